//! How a row of the table of functions becomes code.

use crate::ops::Real;
use crate::ops::cpu::loops::Tile;
use crate::ops::cpu::math::Float;

/// What the gradient of a function is computed from, besides the gradient of its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Saves {
    /// The function's argument.
    Input,
    /// The function's value.
    Output,
    /// Nothing: the gradient is zero, or a multiple of the result's.
    Nothing,
}

/// A gradient's tile: of (dy), or of (dy, what was saved).
pub enum Gradient {
    /// Nothing is saved.
    One(Box<dyn Tile<2>>),
    /// The argument or the value is saved.
    Two(Box<dyn Tile<3>>),
}

/// A parameter of a function as the type that is computed in.
pub trait Parameter<T> {
    /// What the row's expressions see.
    type Value;
    /// The nearest value.
    fn value(self) -> Self::Value;
}

impl<T: Float> Parameter<T> for Real {
    type Value = T;
    #[inline(always)]
    fn value(self) -> T {
        T::of(self.0)
    }
}

impl<T: Float> Parameter<T> for Option<Real> {
    type Value = Option<T>;
    #[inline(always)]
    fn value(self) -> Option<T> {
        self.map(|real| T::of(real.0))
    }
}

/// Makes the enum of functions from its rows, and what is asked of it.
macro_rules! functions {
    (@floats $isa:ident, [$($p:ident: $type:ty),*], { $x:ident => $value:expr }) => {{
        struct Row { $($p: $type),* }
        impl<T: Float + Value> Map1<T, T> for Row {
            type Reach = T::Reach;
            #[inline(always)]
            fn at<L: Level>(&self, $x: T) -> T {
                $(let $p = Parameter::<T>::value(self.$p);)*
                $value
            }
        }
        map1::<T, T>($isa, Row { $($p: *$p),* })
    }};
    (@integers $isa:ident, [$($p:ident: $type:ty),*], {}) => { None };
    (@integers $isa:ident, [$($p:ident: $type:ty),*], { $x:ident => $value:expr }) => {{
        struct Row { $($p: $type),* }
        impl<T: Integer> Map1<T, T> for Row {
            type Reach = T::Reach;
            #[inline(always)]
            fn at<L: Level>(&self, $x: T) -> T {
                $(let $p = self.$p;)*
                $value
            }
        }
        Some(map1::<T, T>($isa, Row { $($p: *$p),* }))
    }};
    (@has {}) => { false };
    (@has $row:tt) => { true };
    (@saves { $saves:expr; $($rest:tt)* }) => { $saves };
    (@gradient $isa:ident, [$($p:ident: $type:ty),*], { $saves:expr; $dy:ident => $value:expr }) => {{
        struct Row { $($p: $type),* }
        impl<T: Float + Value> Map1<T, T> for Row {
            type Reach = T::Reach;
            #[inline(always)]
            fn at<L: Level>(&self, $dy: T) -> T {
                $(let $p = Parameter::<T>::value(self.$p);)*
                $value
            }
        }
        Gradient::One(map1::<T, T>($isa, Row { $($p: *$p),* }))
    }};
    (@gradient $isa:ident, [$($p:ident: $type:ty),*],
        { $saves:expr; $dy:ident, $s:ident => $value:expr }) => {{
        struct Row { $($p: $type),* }
        impl<T: Float + Value> Map2<T, T, T> for Row {
            type Reach = T::Reach;
            #[inline(always)]
            fn at<L: Level>(&self, $dy: T, $s: T) -> T {
                $(let $p = Parameter::<T>::value(self.$p);)*
                $value
            }
        }
        Gradient::Two(map2::<T, T, T>($isa, Row { $($p: *$p),* }))
    }};
    ($(
        $(#[$doc:meta])*
        $variant:ident $({ $($p:ident: $type:ty),* })? $name:literal $cost:ident
            $floats:tt $integers:tt $gradient:tt;
    )*) => {
        /// A function of one variable, with its parameters.
        #[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        #[allow(missing_docs)]
        pub enum UnaryFn {
            $($(#[$doc])* $variant $({ $($p: $type),* })?,)*
            /// Whether x is zero, of any dtype.
            Not,
        }

        #[allow(unused_variables)]
        impl UnaryFn {
            /// The names of all functions.
            pub const NAMES: &[&str] = &[$($name,)* "not"];
            /// The names of all gradients; `not` has none.
            pub const GRADIENTS: &[&str] = &[$(concat!($name, "_grad")),*];

            /// Its name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(UnaryFn::$variant { .. } => $name,)*
                    UnaryFn::Not => "not",
                }
            }

            /// The name of its gradient.
            pub fn gradient_name(&self) -> &'static str {
                match self {
                    $(UnaryFn::$variant { .. } => concat!($name, "_grad"),)*
                    UnaryFn::Not => "not_grad",
                }
            }

            /// Floating-point operations an element.
            pub fn cost(&self) -> u64 {
                match self {
                    $(UnaryFn::$variant { .. } => $cost,)*
                    UnaryFn::Not => CHEAP,
                }
            }

            /// What its gradient is computed from.
            pub fn saves(&self) -> Saves {
                match self {
                    $(UnaryFn::$variant $({ $($p),* })? => functions!(@saves $gradient),)*
                    UnaryFn::Not => Nothing,
                }
            }

            /// Whether integers have integer values (or truth values).
            pub fn takes_integers(&self) -> bool {
                match self {
                    $(UnaryFn::$variant { .. } => functions!(@has $integers),)*
                    UnaryFn::Not => true,
                }
            }

            /// Its values of floats; `None` for `not`.
            pub(super) fn floats<T: Float + Value>(&self, isa: Isa) -> Option<Box<dyn Tile<2>>> {
                Some(match self {
                    $(UnaryFn::$variant $({ $($p),* })? =>
                        functions!(@floats isa, [$($($p: $type),*)?], $floats),)*
                    UnaryFn::Not => return None,
                })
            }

            /// Its values of integers; `None` where they are no integers.
            pub(super) fn integers<T: Integer>(&self, isa: Isa) -> Option<Box<dyn Tile<2>>> {
                match self {
                    $(UnaryFn::$variant $({ $($p),* })? =>
                        functions!(@integers isa, [$($($p: $type),*)?], $integers),)*
                    UnaryFn::Not => None,
                }
            }

            /// Its gradient; `None` for `not`.
            pub(super) fn gradient<T: Float + Value>(&self, isa: Isa) -> Option<Gradient> {
                Some(match self {
                    $(UnaryFn::$variant $({ $($p),* })? =>
                        functions!(@gradient isa, [$($($p: $type),*)?], $gradient),)*
                    UnaryFn::Not => return None,
                })
            }
        }
    };
}

pub(super) use functions;
