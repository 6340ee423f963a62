import type { operations } from './generated/api.ts';
import type { operationTable } from './generated/operations.ts';

export type OperationId = keyof typeof operationTable;

type PathOf<Op> = Op extends { parameters: { path: infer Path } }
  ? { readonly path: Path }
  : { readonly path?: never };
type QueryOf<Op> = Op extends { parameters: { query: infer Query } }
  ? { readonly query: Query }
  : Op extends { parameters: { query?: infer Query } }
    ? { readonly query?: NonNullable<Query> }
    : never;
type BodyOf<Op> = Op extends { requestBody: { content: { 'application/json': infer Body } } }
  ? { readonly body: Body }
  : Op extends { requestBody?: { content: { 'application/json': infer Body } } }
    ? { readonly body?: Body }
    : { readonly body?: never };

/** The parameters of the path, the query and the body of an operation. */
export type Input<Id extends OperationId> = PathOf<operations[Id]> &
  QueryOf<operations[Id]> &
  BodyOf<operations[Id]>;

/** The body of the answer. */
export type Output<Id extends OperationId> = operations[Id] extends {
  responses: { 200: { content: infer Content } };
}
  ? Content[keyof Content]
  : undefined;

type ItemsOf<Page> = Page extends { next_cursor?: string | null }
  ? { [Name in keyof Page]: Page[Name] extends readonly (infer Item)[] ? Item : never }[keyof Page]
  : never;

/** The operations that return one page of a list. */
export type ListId = { [Id in OperationId]: [ItemsOf<Output<Id>>] extends [never] ? never : Id }[OperationId];
export type ItemOf<Id extends ListId> = ItemsOf<Output<Id>>;
