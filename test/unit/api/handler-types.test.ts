import { expect, test } from 'vitest';
import {
  type Handlers,
  type PlannedHandler,
  tryPlan,
  unwrapPlan,
} from '../../../src/ports/operation-context.ts';

// The types that the registry requires of a handler, checked by the compiler with valid and invalid ones: an expected
// error that is missing is an error itself.

const answer = async () => ({ method: 'raw_sign' }) as never;
const plan = async () => 1;

function accept(handler: Handlers['walletRpc']): Handlers['walletRpc'] {
  return handler;
}

test('a handler is a function, or a plan and a function that receives it', () => {
  const planned: PlannedHandler<'walletRpc', number> = { plan, run: answer };
  expect(accept(answer)).toBe(answer);
  expect(accept(planned)).toBe(planned);
});

test('a `run` that does not match its plan does not compile', () => {
  const run: PlannedHandler<'walletRpc', string>['run'] = answer;
  // @ts-expect-error a text is not the number of the plan
  const handler: PlannedHandler<'walletRpc', number> = { plan, run };
  expect(accept(handler)).toBe(handler);
});

test('a `run` that needs a plan without a `plan` does not compile', () => {
  // @ts-expect-error there is no `plan`
  const handler: PlannedHandler<'walletRpc', number> = { run: answer };
  expect(accept(handler)).toBe(handler);
});

test('a handler of another operation does not compile', () => {
  const transfers: PlannedHandler<'transferFromWallet', number> = {
    plan: async ({ body }) => Object.keys(body.source).length,
    run: answer,
  };
  // @ts-expect-error the body of an rpc request has no source
  expect(accept(transfers)).toBe(transfers);
});

test('unwrapping a plan returns it or throws its error', async () => {
  const closed = new Error('closed');
  const refused = await tryPlan(() => Promise.reject(closed));
  expect(() => unwrapPlan(refused)).toThrow(closed);
  expect(unwrapPlan(await tryPlan(async () => undefined))).toBeUndefined();
});
