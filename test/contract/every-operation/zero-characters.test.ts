import { afterAll, beforeAll, expect, test } from 'vitest';
import type { OperationId } from '../../../src/generated/operations.ts';
import { attempt, type Refusal } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import {
  type DocumentedOperation,
  documentedOperations,
  exampleBodies,
  exampleParameters,
} from './documented-operations.ts';

// PostgreSQL cannot store U+0000, so it is refused in every string of a request before the database is used, except in
// texts that are only signed (zero-characters-signed.test.ts).
const signed = /^(walletRpc|createWalletRpcIntent|rawSignWallet) body \/params\/(message|typed_data|bytes)\b/;
type Parts = { path: object; query: object; body: unknown };
interface Place {
  readonly id: OperationId;
  readonly in: 'path' | 'query' | 'body';
  readonly pointer: string;
  readonly input: Parts;
}

/** Every copy of `value` in which one text ends with U+0000, with the place of that text. */
function* spoiled(value: unknown, pointer = ''): Generator<{ pointer: string; value: unknown }> {
  if (typeof value === 'string') yield { pointer, value: `${value}\0` };
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    const inside = `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    for (const one of spoiled(member, inside)) {
      const copy = Array.isArray(value) ? [...value] : { ...value };
      (copy as Record<string, unknown>)[name] = one.value;
      yield { pointer: one.pointer, value: copy };
    }
  }
}

function* placesOf(operation: DocumentedOperation): Generator<Place> {
  for (const [index, body] of exampleBodies(operation).entries()) {
    const input: Parts = { ...exampleParameters(operation), body };
    for (const part of ['path', 'query', 'body'] as const) {
      if (part !== 'body' && index > 0) continue;
      for (const { pointer, value } of spoiled(input[part])) {
        yield { id: operation.operationId, in: part, pointer, input: { ...input, [part]: value } };
      }
    }
  }
}

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

test('U+0000 in any string of any request is refused with its position', async () => {
  const places = documentedOperations.flatMap((operation) => [...placesOf(operation)]);
  const reported = { byName: 0, asMalformed: 0 };
  for (const place of places) {
    const where = `${place.id} ${place.in} ${place.pointer}`;
    if (signed.test(where)) continue;
    const { status, body } = await attempt(sandbox, place.id, place.input);
    expect(`${where}: ${status}`).toBe(`${where}: 400`);
    const { error, data } = body as Refusal;
    const issues = (data?.issues ?? []) as { in: string; pointer: string; message: string }[];
    if (error.endsWith('must not contain U+0000')) {
      expect(issues).toEqual([{ in: place.in, pointer: place.pointer, message: 'must not contain U+0000' }]);
      reported.byName += 1;
    } else {
      // Formats such as addresses and enums refuse it first.
      expect(issues.length, where).toBeGreaterThan(0);
      reported.asMalformed += 1;
    }
  }
  expect(reported.byName).toBeGreaterThan(300);
  expect(reported.asMalformed).toBeGreaterThan(300);
});
