//! Turns a row of the table of functions into code.

use crate::kernels::cpu::loops::Tile;
use crate::kernels::cpu::math::Float;
use crate::ops::Real;

/// What the gradient of a function needs besides the gradient of its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Saves {
    /// The function's argument.
    Input,
    /// The function's value.
    Output,
    /// Nothing: the gradient is zero, or a multiple of that of the result.
    Nothing,
}

/// A gradient's tile: a function of (dy), or of (dy, saved tensor).
pub enum Gradient {
    /// Nothing is saved.
    One(Box<dyn Tile<2>>),
    /// The argument or the value is saved.
    Two(Box<dyn Tile<3>>),
}

/// A parameter of a function, converted to the type of the computation.
pub trait Parameter<T> {
    /// The type in the row's expressions.
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

/// Generates the enum of functions and its methods from the rows.
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

            /// Floating-point operations per element.
            pub fn cost(&self) -> u64 {
                match self {
                    $(UnaryFn::$variant { .. } => $cost,)*
                    UnaryFn::Not => CHEAP,
                }
            }

            /// What its gradient needs besides dy.
            pub fn saves(&self) -> Saves {
                match self {
                    $(UnaryFn::$variant $({ $($p),* })? => functions!(@saves $gradient),)*
                    UnaryFn::Not => Nothing,
                }
            }

            /// Whether it maps integers to integers (or truth values).
            pub fn takes_integers(&self) -> bool {
                match self {
                    $(UnaryFn::$variant { .. } => functions!(@has $integers),)*
                    UnaryFn::Not => true,
                }
            }

            /// The tile of its values on floats; `None` for `not`.
            pub(super) fn floats<T: Float + Value>(&self, isa: Isa) -> Option<Box<dyn Tile<2>>> {
                Some(match self {
                    $(UnaryFn::$variant $({ $($p),* })? =>
                        functions!(@floats isa, [$($($p: $type),*)?], $floats),)*
                    UnaryFn::Not => return None,
                })
            }

            /// The tile of its values on integers; `None` where they are not integers.
            pub(super) fn integers<T: Integer>(&self, isa: Isa) -> Option<Box<dyn Tile<2>>> {
                match self {
                    $(UnaryFn::$variant $({ $($p),* })? =>
                        functions!(@integers isa, [$($($p: $type),*)?], $integers),)*
                    UnaryFn::Not => None,
                }
            }

            /// The tile of its gradient; `None` for `not`.
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
