import { readFileSync } from 'node:fs';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { call, refusal } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

// Every field of every kind of linked account: at its limits, beyond them, with wrong types, missing and large.
// Expectations come from Ajv with the document, and from the few rules below that no schema can express.

interface Schema {
  readonly required: readonly string[];
  readonly properties: Readonly<Record<string, object>>;
}
type Account = Record<string, unknown> & { type: string };

const document = JSON.parse(readFileSync(`${import.meta.dirname}/../../../openapi/openapi.json`, 'utf8'));
const ajv = new Ajv2020({ strict: false, validateSchema: false });
addFormats.default(ajv);
ajv.addSchema({ $id: 'document', ...document });
const linking = document.paths['/v1/users/{user_id}/accounts'].post.requestBody.content['application/json'];
const examples = Object.values(linking.examples as Record<string, { value: Account }>).map(
  ({ value }) => value,
);
const schemas = document.components.schemas as Record<string, Schema>;

/**
 * Phone numbers and addresses are not defined by a schema.
 */
const filledNever = new Set(['phone.number', 'wallet.address', 'farcaster.owner_address']);
const LONGEST = 4096;
const LONGEST_EMAIL = 254;

const inputs = (schemas.LinkedAccountInput as unknown as { oneOf: { $ref: string }[] }).oneOf;
const kinds = inputs.map(({ $ref }) => {
  const schema = schemas[$ref.split('/').at(-1)!]!;
  const type = (schema.properties.type as { const: string }).const;
  const example = examples.find((candidate) => candidate.type === type)!;
  return { type, example, schema, validate: ajv.compile({ $ref: `document${$ref}` }) };
});

/** The shortest and longest repetition of a character that the field accepts; undefined if it accepts none. */
function textBounds(validate: ValidateFunction, example: Account, field: string) {
  for (const fill of ['a', '1']) {
    const isValid = (length: number) => validate({ ...example, [field]: fill.repeat(length) });
    const shortest = Array.from({ length: 100 }, (_, length) => length).find(isValid);
    if (shortest === undefined) continue;
    // The lengths that a field accepts have no gaps.
    return { fill, shortest, longest: Math.min(longestFrom(shortest, isValid), LONGEST) };
  }
  return undefined;
}

function longestFrom(shortest: number, isValid: (length: number) => boolean): number {
  let [accepted, refused] = [shortest, LONGEST + 2];
  while (refused - accepted > 1) {
    const middle = Math.floor((accepted + refused) / 2);
    if (isValid(middle)) accepted = middle;
    else refused = middle;
  }
  return accepted;
}

interface Probe {
  readonly what: string;
  readonly value: unknown;
  readonly isValid: boolean;
}

function probesOf(type: string, field: string, { example, validate }: (typeof kinds)[number]): Probe[] {
  const accepts = (value: unknown) => validate({ ...example, [field]: value });
  const wrong = [
    null,
    true,
    7,
    1.5,
    -1,
    1e300,
    [],
    {},
    '',
    '\0',
    '\ud800',
    'é\u{1f600}',
    ' x',
    'x'.repeat(900_000),
  ];
  const probes = wrong.map((value) => ({
    what: JSON.stringify(value).slice(0, 20),
    value,
    isValid:
      accepts(value) &&
      value !== '\0' &&
      !filledNever.has(`${type}.${field}`) &&
      !(typeof value === 'string' && value.length > LONGEST),
  }));
  const bounds = typeof example[field] === 'string' ? textBounds(validate, example, field) : undefined;
  if (bounds === undefined) return probes;
  const { fill, shortest, longest } = bounds;
  for (const length of [shortest - 1, shortest, longest, longest + 1]) {
    if (length < 0) continue;
    const isValid = length >= shortest && length <= longest && !filledNever.has(`${type}.${field}`);
    probes.push({ what: `${length} characters`, value: fill.repeat(length), isValid });
  }
  return probes;
}

/** E-mail addresses cannot be a repetition of one character. */
function emailProbes(field: string): Probe[] {
  const ofLength = (length: number) => `${'a'.repeat(length - 12)}@example.com`;
  return [LONGEST_EMAIL, LONGEST_EMAIL + 1].map((length) => ({
    what: `${field} of ${length} characters`,
    value: ofLength(length),
    isValid: length <= LONGEST_EMAIL,
  }));
}

describe('linked accounts at their limits', () => {
  let sandbox: TestSandbox;
  beforeAll(async () => {
    sandbox = await startSandbox({ seedData: false });
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());

  async function expectOutcome(
    account: unknown,
    probe: Omit<Probe, 'value'>,
    pointer: string,
  ): Promise<void> {
    const body = { linked_accounts: [account] };
    if (probe.isValid) {
      const made = await call(sandbox, 'createUser', { body: body as never });
      await call(sandbox, 'deleteUser', { path: { user_id: made.body.id } });
      return;
    }
    const { status, body: refused } = await refusal(sandbox, 'createUser', { body });
    expect({ status, code: refused.code }, probe.what).toEqual({ status: 400, code: 'invalid_data' });
    const issues = refused.data?.issues as { in: string; pointer: string }[];
    expect(issues, probe.what).toContainEqual({ in: 'body', pointer, message: expect.any(String) });
  }

  test('every kind of account in the contract has an example', () => {
    for (const { validate, example } of kinds) expect(validate(example), example.type).toBe(true);
  });

  const fields = kinds.flatMap((kind) =>
    Object.keys(kind.schema.properties)
      .filter((field) => field !== 'type')
      .map((field) => ({ type: kind.type, field, kind })),
  );
  test.each(fields)('linked accounts at their limits: $type: $field', async ({ type, field, kind }) => {
    const pointer = `/linked_accounts/0/${field}`;
    const { [field]: _, ...without } = kind.example;
    const isRequired = kind.schema.required.includes(field);
    await expectOutcome(without, { what: 'missing', isValid: !isRequired }, pointer);
    const isEmail = (kind.schema.properties[field] as { format?: string }).format === 'email';
    const probes = [...probesOf(type, field, kind), ...(isEmail ? emailProbes(field) : [])];
    expect(probes.some(({ isValid }) => !isValid)).toBe(true);
    for (const probe of probes)
      await expectOutcome({ ...kind.example, [field]: probe.value }, probe, pointer);
  });

  test.each(kinds)('$type with an unknown field', async ({ example }) => {
    const probe = { what: 'surplus', isValid: false };
    for (const name of ['note', 'verified_at', 'id', '__proto__x', 'é']) {
      await expectOutcome({ ...example, [name]: 'x' }, probe, `/linked_accounts/0/${name}`);
    }
  });

  test('without a type, of an unknown type, and not an account', async () => {
    const probe = { what: 'no kind', isValid: false };
    for (const type of [undefined, null, 7, '', 'smart_wallet', 'cross_app', 'custom:acme', 'EMAIL']) {
      await expectOutcome({ type, address: 'a@example.com' }, probe, '/linked_accounts/0/type');
    }
    for (const account of [null, 7, 'email', []]) await expectOutcome(account, probe, '/linked_accounts/0');
    for (const linked_accounts of [[], {}, null, 'x', Array.from({ length: 101 }, () => examples[0])]) {
      const { status, body } = await refusal(sandbox, 'createUser', { body: { linked_accounts } });
      expect({ status, code: body.code }).toEqual({ status: 400, code: 'invalid_data' });
    }
  });

  test('more than 1 MB', async () => {
    const body = { linked_accounts: [{ type: 'custom_auth', custom_user_id: 'x'.repeat(1_100_000) }] };
    expect((await refusal(sandbox, 'createUser', { body })).status).toBe(413);
  });

  test('nothing that was refused is stored', async () => {
    expect((await call(sandbox, 'listUsers', {})).body).toEqual({ data: [], next_cursor: null });
  });
});
