import { expect, test } from 'vitest';
import { ContractError } from '../../../codegen/document.ts';
import { generateContract } from '../../../codegen/generate.ts';
import { toyContract, toyProject } from './toy-contract.ts';

type File = 'common.yaml' | 'toys.yaml';

/** [what is wrong, document, text, its replacement, the reported fault] */
const faults: [string, File, string, string, string][] = [
  [
    'a schema keyword that no emitter knows',
    'toys.yaml',
    'exclusiveMinimum: 0',
    'exclusiveMin: 0',
    '#/components/schemas/Ball/properties/radius: unknown keyword `exclusiveMin`',
  ],
  [
    'a keyword that JSON Schema has and we do not emit',
    'toys.yaml',
    'Toy:\n      description: One toy.',
    'Toy:\n      not: {}',
    '#/components/schemas/Toy: unknown keyword `not`',
  ],
  [
    'a format without a check',
    'toys.yaml',
    'x-format: unix-ms',
    'x-format: unix-weeks',
    '#/components/schemas/Ball/properties/made_at: unknown x-format `unix-weeks`',
  ],
  [
    'a format of our own where tools expect theirs',
    'toys.yaml',
    'format: int64, x-format: unix-ms',
    'format: unix-ms',
    '#/components/schemas/Ball/properties/made_at: unknown format `unix-ms`',
  ],
  [
    'a Unix time that tools do not know as an integer',
    'toys.yaml',
    'format: int64, x-format: unix-ms',
    'x-format: unix-ms',
    '#/components/schemas/Ball/properties/made_at: x-format `unix-ms` needs format `int64` beside it',
  ],
  [
    'a format of the standard beside a stricter one of our own',
    'toys.yaml',
    'x-format: user-did',
    'format: uri, x-format: user-did',
    '#/components/schemas/Bear/properties/owner_ids/items: x-format `user-did` needs no format beside it',
  ],
  [
    'an array of a body without a limit',
    'toys.yaml',
    'owner_ids: { type: array, maxItems: 9,',
    'owner_ids: { type: array,',
    '#/components/schemas/Bear/properties/owner_ids: no maxItems',
  ],
  [
    'a text of a body whose pattern has no end',
    'toys.yaml',
    'items: { type: string, x-format: user-did } }',
    "items: { type: string, pattern: '^did:' } }",
    '#/components/schemas/Bear/properties/owner_ids/items: no maxLength',
  ],
  [
    'a text of a body whose pattern holds for a part of it',
    'toys.yaml',
    'items: { type: string, x-format: user-did } }',
    "items: { type: string, pattern: '^a|b$' } }",
    '#/components/schemas/Bear/properties/owner_ids/items: no maxLength',
  ],
  [
    'a text of a body with a format that has no limit',
    'toys.yaml',
    'name: { type: [string, "null"], maxLength: 64,',
    'name: { type: [string, "null"], format: email,',
    '#/components/schemas/Bear/properties/name: no maxLength',
  ],
  [
    'a text of a path without a limit',
    'toys.yaml',
    'minLength: 2, maxLength: 64 }',
    'minLength: 2 }',
    '#/paths/~1v1~1toys~1{toy_id}/put/parameters/0/schema: no maxLength',
  ],
  [
    'an array of a query without a limit',
    'toys.yaml',
    'schema: { type: array, maxItems: 9,',
    'schema: { type: array,',
    '#/paths/~1v1~1toys~1{toy_id}/put/parameters/1/schema: no maxItems',
  ],
  [
    'an unknown key of an operation',
    'toys.yaml',
    'x-errors:',
    'x-error:',
    '#/paths/~1v1~1toys~1{toy_id}/put: unknown key `x-error`',
  ],
  [
    'a request example that its schema refuses',
    'toys.yaml',
    'radius: 2,',
    'radius: -2,',
    '#/paths/~1v1~1toys~1{toy_id}/put/requestBody/content/application~1json/examples/ball/value/radius: must be > 0',
  ],
  [
    'a response example with a field that the contract does not declare',
    'toys.yaml',
    'kind: bear, name: null',
    'kind: bear, name: null, age: 4',
    '#/paths/~1v1~1toys~1{toy_id}/put/responses/200/content/application~1json/example/first: must NOT have additional properties (`age`)',
  ],
  [
    'a parameter example that its schema refuses',
    'toys.yaml',
    'example: t1',
    'example: t',
    '#/paths/~1v1~1toys~1{toy_id}/put/parameters/0/example: must NOT have fewer than 2 characters',
  ],
  [
    'a webhook example that its schema refuses',
    'toys.yaml',
    'example: { kind: ball, radius: 1 }',
    'example: { kind: ball }',
    "#/webhooks/toy.put/post/requestBody/content/application~1json/example: must have required property 'radius' (`radius`)",
  ],
  [
    'a schema example that its schema refuses',
    'toys.yaml',
    'description: In centimetres.',
    'description: In centimetres., examples: [3, 0]',
    '#/components/schemas/Ball/properties/radius/examples/1: must be > 0',
  ],
  [
    'two schemas of one name',
    'common.yaml',
    '    Error:',
    '    Ball: { type: string }\n    Error:',
    'schemas Ball is declared in openapi/common.yaml and in openapi/toys.yaml',
  ],
  [
    'two operations of one id',
    'toys.yaml',
    'operationId: deleteToy',
    'operationId: putToy',
    'operationId putToy is declared at #/paths/~1v1~1toys~1{toy_id}/put and at #/paths/~1v1~1toys~1{toy_id}/delete',
  ],
  [
    'an operation without an id',
    'toys.yaml',
    'operationId: deleteToy\n',
    'deprecated: false\n',
    '#/paths/~1v1~1toys~1{toy_id}/delete: no operationId',
  ],
  [
    'an operation without a tag',
    'toys.yaml',
    'operationId: deleteToy\n      tags: [toy_box]',
    'operationId: deleteToy\n      tags: []',
    '#/paths/~1v1~1toys~1{toy_id}/delete: expected exactly one tag',
  ],
  [
    'a body without an example',
    'toys.yaml',
    ', example: { kind: ball, radius: 1 }',
    '',
    '#/webhooks/toy.put/post/requestBody/content/application~1json: no example',
  ],
  [
    'a description that is still to be written',
    'toys.yaml',
    'description: Open to everyone.',
    'description: TODO',
    '#/paths/~1v1~1toys~1{toy_id}/delete/description: still a placeholder',
  ],
  [
    'an error code that the catalogue does not have',
    'toys.yaml',
    'x-errors: [not_found]',
    'x-errors: [gone]',
    '#/paths/~1v1~1toys~1{toy_id}/put: expected a code of the catalogue, got `gone`',
  ],
  [
    'a reference into a file that has no such component',
    'toys.yaml',
    'common.yaml#/components/parameters/AppId',
    'common.yaml#/components/parameters/AppName',
    'openapi/toys.yaml: openapi/common.yaml has no #/components/parameters/AppName',
  ],
  [
    'a path parameter that is not declared',
    'toys.yaml',
    'name: toy_id, in: path, required: true, schema: { type: string, minLength: 2',
    'name: box_id, in: path, required: true, schema: { type: string, minLength: 2',
    '#/paths/~1v1~1toys~1{toy_id}/put: expected the path parameters [toy_id], got [box_id]',
  ],
  [
    'a union whose branches the tag cannot tell apart',
    'toys.yaml',
    'kind: { const: bear }',
    'kind: { type: string, maxLength: 9 }',
    '#/components/schemas/Toy: expected `Bear` to declare `kind` with a `const` or an `enum` of strings',
  ],
  [
    'a union with two branches for one value of the tag',
    'toys.yaml',
    'kind: { const: bear }',
    'kind: { enum: [bear, ball] }',
    '#/components/schemas/Toy: expected one branch for `ball`, got `Ball` and `Bear`',
  ],
  [
    'a branch of a tagged union that is written in place',
    'toys.yaml',
    '{ $ref: "#/components/schemas/Bear" }]',
    '{ type: object, required: [kind], properties: { kind: { const: bear } } }]',
    '#/components/schemas/Toy: expected a reference as branch 1, because a mapping can only name components',
  ],
  [
    'a discriminator whose mapping is written by hand',
    'toys.yaml',
    'propertyName: kind }',
    'propertyName: kind, mapping: { ball: "#/components/schemas/Ball" } }',
    '#/components/schemas/Toy: expected no `mapping`, because it is derived',
  ],
  [
    'a link to a path without operations',
    'toys.yaml',
    "'/v1/toys/{toy_id}': { putToy",
    "'/v1/toy/{toy_id}': { putToy",
    'x-links /v1/toy/{toy_id}: no operation has this path',
  ],
  [
    'a link from an unknown operation',
    'toys.yaml',
    '{ putToy: /first',
    '{ setToy: /first',
    'x-links /v1/toys/{toy_id}: setToy is not an operation',
  ],
  [
    'a link with a value that the response does not have',
    'toys.yaml',
    'putToy: /first/name',
    'putToy: /first/title',
    'x-links /v1/toys/{toy_id}: putToy returns nothing at `/first/title`',
  ],
  [
    'a link with a parameter that the request does not have',
    'toys.yaml',
    "{ '/v1/toys/{toy_id}': {",
    "{ '/v1/{box_id}/toys/{toy_id}': {",
    'x-links /v1/{box_id}/toys/{toy_id}: putToy has no parameter `box_id`',
  ],
  ['broken YAML', 'toys.yaml', 'tags: [{', 'tags: [[{', 'openapi/toys.yaml: expected valid YAML:'],
];

test.each(faults)('%s stops the run', async (_what, file, from, to, fault) => {
  using project = toyProject();
  project.edit(file, from, to);
  const run = generateContract(toyContract, project.root);
  await expect(run).rejects.toBeInstanceOf(ContractError);
  await expect(run).rejects.toThrow(fault);
});

test('a draft contract may have placeholders and invalid examples', async () => {
  using project = toyProject();
  project.edit('toys.yaml', 'description: Open to everyone.', 'description: TODO');
  project.edit('toys.yaml', 'radius: 2,', 'radius: -2,');
  const { unfinished } = await generateContract(toyContract, project.root, { allowTodo: true });
  expect(unfinished).toEqual([
    '#/paths/~1v1~1toys~1{toy_id}/delete/description: still a placeholder',
    '#/paths/~1v1~1toys~1{toy_id}/put/requestBody/content/application~1json/examples/ball/value/radius: must be > 0',
  ]);
});
