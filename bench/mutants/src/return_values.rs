//! Simple values of a return type, such as `true`, `None` or `Ok(0)`, which a mutated function returns at once.

use syn::{GenericArgument, PathArguments, Type};

/// Expressions that may be of this type, guessed from its name. The compiler rejects wrong ones.
pub(crate) fn return_values(ty: &Type) -> Vec<String> {
    match ty {
        Type::Never(_) => Vec::new(),
        Type::Tuple(all) if all.elems.is_empty() => vec!["()".to_owned()],
        Type::Tuple(all) => {
            let first = |ty| return_values(ty).into_iter().next();
            let parts: Option<Vec<_>> = all.elems.iter().map(first).collect();
            let parts = parts.map(|parts| format!("({},)", parts.join(", ")));
            parts.into_iter().collect()
        }
        Type::Paren(inner) => return_values(&inner.elem),
        Type::Group(inner) => return_values(&inner.elem),
        Type::Reference(inner) => match &*inner.elem {
            Type::Path(path) if path.path.is_ident("str") => texts(["\"\"", "\"xyzzy\""]),
            Type::Slice(_) => texts(["&[]"]),
            _ => Vec::new(),
        },
        // The concrete type is only known from the body.
        Type::ImplTrait(_) => Vec::new(),
        Type::Path(path) => path
            .path
            .segments
            .last()
            .map_or_else(Vec::new, values_of_named_type),
        _ => texts(["Default::default()"]),
    }
}

fn texts<const N: usize>(all: [&str; N]) -> Vec<String> {
    all.map(str::to_owned).into()
}

fn values_of_named_type(segment: &syn::PathSegment) -> Vec<String> {
    let inner = first_argument(&segment.arguments).map(return_values);
    let wrapped = |around: &str| {
        let inner = inner.clone().unwrap_or_default();
        inner
            .into_iter()
            .map(|value| format!("{around}({value})"))
            .collect::<Vec<_>>()
    };
    match segment.ident.to_string().as_str() {
        "bool" => texts(["true", "false"]),
        "String" => texts(["String::new()", "\"xyzzy\".to_owned()"]),
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i8" | "i16" | "i32" | "i64" | "i128"
        | "isize" => texts(["0", "1"]),
        "Option" => [texts(["None"]), wrapped("Some")].concat(),
        "Result" => wrapped("Ok"),
        "Outcome" => inner
            .unwrap_or_default()
            .into_iter()
            .map(|value| format!("Ok(Ok({value}))"))
            .collect(),
        "Vec" => {
            let one = inner.unwrap_or_default();
            let one = one.into_iter().map(|value| format!("vec![{value}]"));
            texts(["Vec::new()"]).into_iter().chain(one).collect()
        }
        "Box" => wrapped("Box::new"),
        "Arc" => wrapped("std::sync::Arc::new"),
        "Duration" => texts(["std::time::Duration::ZERO", "std::time::Duration::MAX"]),
        _ => texts(["Default::default()"]),
    }
}

fn first_argument(arguments: &PathArguments) -> Option<&Type> {
    let PathArguments::AngleBracketed(all) = arguments else {
        return None;
    };
    all.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}
