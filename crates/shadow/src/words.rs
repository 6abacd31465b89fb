//! Enums whose variants are words in JSON, items, queries and logs.

/// Defines an enum with one word per variant: `ALL`, `WORDS`, `as_str`, `Display` and `FromStr`.
#[macro_export]
macro_rules! word_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident as $what:literal {
            $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $name {
            /// All variants.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// All variants, by their words.
            pub const WORDS: &'static [(&'static str, $name)] = &[$(($word, $name::$variant)),+];

            /// Returns the word.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<$name, String> {
                match text {
                    $($word => Ok($name::$variant),)+
                    _ => Err(format!(
                        concat!("{:?} is not a ", $what, "; expected one of: {}"),
                        text,
                        [$($word),+].join(", "),
                    )),
                }
            }
        }
    };
}
