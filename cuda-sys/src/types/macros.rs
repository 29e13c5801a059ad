//! The macros the type files are written with: C enums as open integer newtypes, C structs that
//! also describe their own layout. They know nothing of CUDA.

/// A C enum whose values come from foreign code: an integer newtype, and one constant per
/// enumerator under its C name. A Rust enum would make every value a newer driver may return
/// undefined behaviour.
macro_rules! c_enum {
    ($name:ident($rep:ty) $($value:ident = $number:expr,)*) => {
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $rep);
        $(pub const $value: $name = $name($number);)*

        impl $name {
            /// The C name of the value (the first of those that share it), or `None` for one this
            /// list does not hold.
            pub fn name(self) -> Option<&'static str> {
                $(if self.0 == $number {
                    return Some(stringify!($value));
                })*
                None
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{}({})", stringify!($name), self.0),
                }
            }
        }
    };
}

/// Enumerators that functions take as plain integers (mostly flags to be combined).
macro_rules! c_consts {
    ($rep:ty; $($value:ident = $number:expr,)*) => { $(pub const $value: $rep = $number;)* };
}

/// The status type: constants are associated, because their C names begin with the type's purpose
/// anyway.
macro_rules! c_result {
    ($($value:ident = $number:literal $c_name:literal,)*) => {
        /// A driver status. Open: newer drivers return values this list does not hold.
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[must_use]
        pub struct CUresult(pub u32);

        impl CUresult {
            $(pub const $value: CUresult = CUresult($number);)*

            /// The C name (`CUDA_ERROR_INVALID_VALUE`), or `None` for a status this list does not
            /// hold.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($c_name),)*
                    _ => None,
                }
            }
        }
    };
}

/// Opaque handles, each its own type, the size of a pointer. They are names, not memory: any thread
/// may hold one.
macro_rules! c_handles {
    ($($(#[$doc:meta])* $name:ident,)*) => { $(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub *mut c_void);

        impl $name {
            /// The null handle.
            pub const NULL: $name = $name(core::ptr::null_mut());

            /// The handle with this bit pattern.
            pub const fn from_bits(bits: usize) -> $name {
                $name(bits as *mut c_void)
            }

            /// The bit pattern: what identifies the object in traces and maps.
            pub fn bits(self) -> usize {
                self.0 as usize
            }

            /// Whether this is the null handle.
            pub fn is_null(self) -> bool {
                self.0.is_null()
            }
        }

        impl Default for $name {
            fn default() -> $name {
                $name::NULL
            }
        }

        // SAFETY: the pointer is never dereferenced on our side; it only names an object of the
        // driver.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}
    )* };
}

/// C structs and unions (`repr(C)`), and a list of their layouts under the given name for the
/// comparison with `cuda.h`. All of them are plain data for which all-zero bytes are a value:
/// numbers, handles, nullable pointers and functions.
macro_rules! c_structs {
    ($layouts:ident $($(#[$attribute:meta])* $kind:ident $name:ident { $($field:ident: $ty:ty,)* })*) => {
        $(
            $(#[$attribute])*
            #[repr(C)]
            #[derive(Clone, Copy)]
            pub $kind $name { $(pub $field: $ty,)* }

            impl $name {
                /// All bytes zero, as C's `= {0}`.
                pub const fn zeroed() -> $name {
                    // SAFETY: every field is an integer, a raw pointer, an `Option` of a function,
                    // or made of these.
                    unsafe { core::mem::zeroed() }
                }
            }

            impl Default for $name {
                fn default() -> $name {
                    $name::zeroed()
                }
            }
        )*

        /// Sizes and offsets as the Rust compiler laid them out.
        pub const $layouts: &[$crate::types::Layout] = &[$($crate::types::Layout {
            name: stringify!($name),
            size: core::mem::size_of::<$name>(),
            align: core::mem::align_of::<$name>(),
            fields: &[$((stringify!($field), core::mem::offset_of!($name, $field)),)*],
        },)*];
    };
}
