//! The test that the description of the API, `docs/reference/openapi.json`, matches the endpoints and their types.

use hush_protocol::{Code, ohttp::GATEWAY_PATH};
use hush_server::openapi::Endpoints;
use utoipa::{
    OpenApi, PartialSchema,
    openapi::{
        Content, KnownFormat, ObjectBuilder, Ref, RefOr, Required, ResponseBuilder, Schema, SchemaFormat,
        Type,
        path::{ParameterBuilder, ParameterIn},
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use super::reference;
use crate::commands::serve::ShownPlan;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "HushDB",
        description = "A private look-up server. Queries and answers are protobuf messages of ciphertexts: docs/reference/file-formats.md. Errors \
                       are in docs/reference/http-api.md. The admin endpoints are at a listener of their own.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    security((), ("token" = [])),
    tags(
        (name = "tables", description = "For clients."),
        (name = "relay", description = "Oblivious HTTP (RFC 9458)."),
        (name = "health", description = "For orchestrators."),
        (name = "admin", description = "For who runs the server, at --listen-admin.")
    ),
    components(schemas(ShownPlan))
)]
struct Described;

#[test]
fn the_description_of_the_api_is_that_of_the_endpoints() {
    let mut document = Described::openapi();
    document.merge(Endpoints::openapi());
    document.merge(hush_operator::DescribedTask::openapi());
    complete(&mut document);
    let text = document.to_pretty_json().unwrap() + "\n";
    reference::assert_written("openapi.json", &text);
}

/// Adds the common parts of all endpoints: tokens, problems, the parameters of paths.
fn complete(document: &mut utoipa::openapi::OpenApi) {
    let components = document.components.get_or_insert_default();
    let token = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("`hushdb token create`; admin endpoints need the scope admin."));
    components.add_security_scheme("token", SecurityScheme::Http(token.build()));
    let problem = ResponseBuilder::new()
        .description("A problem document (RFC 9457); `code` says which.")
        .content("application/problem+json", Content::new(Some(Ref::from_schema_name("Problem"))));
    components.responses.insert("Problem".into(), problem.build().into());
    let hash = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[0-9a-f]{64}$"));
    let hash = RefOr::T(Schema::Object(hash.build()));
    if let Some(RefOr::T(Schema::Object(problem))) = components.schemas.get_mut("Problem") {
        let codes = Code::ALL.iter().filter(|code| code.status().is_some()).map(|code| code.word());
        let schema = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(codes));
        problem.properties.insert("code".into(), RefOr::T(Schema::Object(schema.build())));
    }
    for (path, item) in &mut document.paths.paths {
        let tag = match path {
            path if path.starts_with("/v1/admin/") => "admin",
            path if path.starts_with("/v1/") => "tables",
            path if path == GATEWAY_PATH => "relay",
            _ => "health",
        };
        let operations =
            [&mut item.get, &mut item.head, &mut item.post, &mut item.put, &mut item.patch, &mut item.delete];
        for operation in operations.into_iter().flatten() {
            operation.tags = Some(vec![tag.into()]);
            if let Some(RefOr::T(body)) = &mut operation.request_body {
                body.required = Some(Required::True);
                body.content.values_mut().for_each(describe_bytes);
            }
            for response in operation.responses.responses.values_mut() {
                let RefOr::T(response) = response else { continue };
                response.content.values_mut().for_each(describe_bytes);
            }
            if path != "/livez" {
                let problem = RefOr::Ref(Ref::from_response_name("Problem"));
                operation.responses.responses.insert("default".into(), problem);
            }
            let named =
                path.split_once('{').and_then(|(before, name)| Some((before, name.split_once('}')?.0)));
            let Some((before, name)) = named else { continue };
            let (words, schema) = match name {
                "hash" => ("BLAKE3 of the content, in hex.", hash.clone()),
                "table" => ("The table's name.", Ref::from_schema_name("Name").into()),
                _ if before.ends_with("/tasks/") => ("The task's number.", u64::schema()),
                _ => ("The upload's ID.", Ref::from_schema_name("Name").into()),
            };
            let parameter = ParameterBuilder::new()
                .name(name)
                .parameter_in(ParameterIn::Path)
                .required(Required::True)
                .description(Some(words))
                .schema(Some(schema));
            operation.parameters.get_or_insert_default().insert(0, RefOr::T(parameter.build()));
        }
    }
}

/// Describes a body of bytes as bytes: the schema of a `Vec<u8>` would be an array of numbers.
fn describe_bytes(content: &mut RefOr<Content>) {
    if let RefOr::T(content) = content
        && matches!(content.schema, Some(RefOr::T(Schema::Array(_))))
    {
        let binary = SchemaFormat::KnownFormat(KnownFormat::Binary);
        let bytes = ObjectBuilder::new().schema_type(Type::String).format(Some(binary));
        content.schema = Some(RefOr::T(Schema::Object(bytes.build())));
    }
}
