import { expect, test } from 'vitest';
import type { HandlerFile, Preparation, PreparedHandler } from '../../../src/operation-context.ts';
import { keepPrepared, unwrapPrepared } from '../../../src/prepared.ts';

// The types that the registry requires of a handler file, checked by the compiler with valid and invalid files: an
// expected error that is missing is an error itself.

const answer = async () => ({ method: 'raw_sign' }) as never;
const prepare: Preparation<'walletRpc', number> = async () => 1;

function accept<File>(file: HandlerFile<'walletRpc', File>): HandlerFile<'walletRpc', File> {
  return file;
}

test('a file exports `run`, or `prepare` and a `run` that receives its result', () => {
  const plain = { run: answer };
  const run: PreparedHandler<'walletRpc', number> = answer;
  const prepared = { prepare, run };
  expect(accept<typeof plain>(plain)).toBe(plain);
  expect(accept<typeof prepared>(prepared)).toBe(prepared);
});

test('a `run` that does not match the result of its `prepare` does not compile', () => {
  const run: PreparedHandler<'walletRpc', string> = answer;
  const file = { prepare, run };
  // @ts-expect-error a text is not the number that was found
  expect(accept<typeof file>(file)).toBe(file);
});

test('a `run` that needs a preparation without a `prepare` does not compile', () => {
  const run: PreparedHandler<'walletRpc', number> = answer;
  const file = { run };
  // @ts-expect-error there is no `prepare`
  expect(accept<typeof file>(file)).toBe(file);
});

test('a `prepare` of another operation does not compile', () => {
  const ofTransfers: Preparation<'transferFromWallet', number> = async ({ body }) =>
    Object.keys(body.source).length;
  const file = { prepare: ofTransfers, run: answer };
  // @ts-expect-error the body of an rpc request has no source
  expect(accept<typeof file>(file)).toBe(file);
});

test('unwrapping a preparation returns its result or throws its error', async () => {
  const closed = new Error('closed');
  const refused = await keepPrepared(() => Promise.reject(closed));
  expect(() => unwrapPrepared(refused)).toThrow(closed);
  expect(unwrapPrepared(await keepPrepared(async () => undefined))).toBeUndefined();
});
