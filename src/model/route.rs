//! Routes: the consumers of a namespace's notices, each with its own queue.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::model::{Invalid, LeadTime, Name};

/// One consumer of a namespace's notices, and which of them it wants.
///
/// Written as `NAME`, `NAME:reminders` or `NAME:cleanups`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "daemon", derive(utoipa::ToSchema))]
pub struct Route {
    /// The name; also the last part of the route's key.
    pub name: Name,
    /// Whether it wants reminders. Default: yes.
    pub reminders: bool,
    /// Whether it wants cleanups. Default: yes.
    pub cleanups: bool,
    /// The lead times whose reminders it wants. Default: none named, which means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leads: Vec<LeadTime>,
}

impl Route {
    /// A route that wants everything.
    pub fn all(name: Name) -> Self {
        Self { name, reminders: true, cleanups: true, leads: Vec::new() }
    }

    /// The default route of a namespace: `main`, which wants everything.
    ///
    /// # Errors
    /// Never in practice: the name is valid.
    pub fn main() -> Result<Self, Invalid> {
        Ok(Self::all(Name::new("route", "main")?))
    }

    /// Whether it wants the reminder of this lead.
    pub fn wants_reminder(&self, lead: LeadTime) -> bool {
        self.reminders && (self.leads.is_empty() || self.leads.contains(&lead))
    }
}

impl FromStr for Route {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (name, filter) = text.split_once(':').unwrap_or((text, "all"));
        let name = Name::new("route", name)?;
        let (reminders, cleanups) = match filter {
            "all" => (true, true),
            "reminders" => (true, false),
            "cleanups" => (false, true),
            other => {
                let other = other.escape_debug();
                return Err(Invalid::new(
                    "route",
                    format!("filter \"{other}\": use NAME, NAME:reminders or NAME:cleanups"),
                ));
            }
        };
        Ok(Self { name, reminders, cleanups, leads: Vec::new() })
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name.as_str())?;
        match (self.reminders, self.cleanups) {
            (true, false) => f.write_str(":reminders"),
            (false, true) => f.write_str(":cleanups"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_written_as_a_name_and_a_filter() {
        for text in ["main", "mail:reminders", "s3:cleanups"] {
            assert_eq!(text.parse::<Route>().unwrap().to_string(), text);
        }
        assert!("x:y".parse::<Route>().unwrap_err().to_string().contains("NAME:reminders"));
        assert!("X".parse::<Route>().unwrap_err().to_string().starts_with("route \"X\""));
    }

    #[test]
    fn a_route_may_want_only_some_leads() {
        let lead = |ms| LeadTime::from_millis(ms).unwrap();
        let mut route = Route::main().unwrap();
        assert!(route.wants_reminder(lead(5)));
        route.leads = vec![lead(7)];
        assert!(route.wants_reminder(lead(7)) && !route.wants_reminder(lead(5)));
    }
}
