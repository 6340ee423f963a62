import type { ErrorCode } from '../../errors.ts';

/** An error as the example of the document shows it. */
interface DocumentedError {
  readonly message: string | undefined;
  readonly data: Readonly<Record<string, unknown>> | undefined;
}

/** The errors of each operation. */
export type DocumentedErrors = ReadonlyMap<string, ReadonlyMap<ErrorCode, DocumentedError>>;

/** As much of an OpenAPI document as its errors need. */
export interface ErrorsDocument {
  readonly paths: Readonly<
    Record<
      string,
      Readonly<
        Record<
          string,
          { readonly operationId: string; readonly responses: Readonly<Record<string, Response>> }
        >
      >
    >
  >;
}

interface Response {
  readonly content?: Readonly<Record<string, { readonly examples?: Readonly<Record<string, Example>> }>>;
}

interface Example {
  readonly value: { readonly error?: string; readonly data?: Readonly<Record<string, unknown>> };
}

/** The document has one example for each error code of a response, under the name of the code. */
export function documentedErrorsOf({ paths }: ErrorsDocument): DocumentedErrors {
  return new Map(
    Object.values(paths)
      .flatMap((methods) => Object.values(methods))
      .map(({ operationId, responses }) => [operationId, errorsOf(responses)]),
  );
}

function errorsOf(responses: Readonly<Record<string, Response>>): Map<ErrorCode, DocumentedError> {
  const refusals = Object.entries(responses).filter(([status]) => Number(status) >= 400);
  const examples = refusals.flatMap(([, { content }]) =>
    Object.entries(content?.['application/json']?.examples ?? {}),
  );
  return new Map(
    examples.map(([code, { value }]) => [
      code as ErrorCode,
      // `error` of an OAuth error (RFC 6749) is not a message.
      { message: 'error_description' in value ? undefined : value.error, data: value.data },
    ]),
  );
}
