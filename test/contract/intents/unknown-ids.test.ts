import { afterAll, beforeAll, expect, test } from 'vitest';
import { refusal } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import {
  documentedOperations,
  exampleBodies,
  exampleParameters,
} from '../every-operation/documented-operations.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

const proposals = documentedOperations.filter(
  ({ operationId, parameters = [] }) =>
    /Intent$/.test(operationId) &&
    parameters.some(({ in: place, name }) => place === 'path' && name !== 'intent_id'),
);

test('there are proposals about policies, rules, key quorums, condition sets and wallets', () => {
  expect(proposals.length).toBeGreaterThanOrEqual(10);
});

test.each(proposals)(
  '$operationId: any text can be an id; one of nothing is not found',
  async (operation) => {
    const { path } = exampleParameters(operation);
    const [body] = exampleBodies(operation);
    for (const id of ['x', 'NOT-AN-ID', 'a'.repeat(25), 'é'.repeat(12)]) {
      const unknown = Object.fromEntries(Object.keys(path).map((name) => [name, id]));
      const { status, body: answer } = await refusal(sandbox, operation.operationId, { path: unknown, body });
      expect({ id, status, error: answer.error }).toEqual({
        id,
        status: 404,
        error: expect.stringMatching(/ not found$/),
      });
    }
  },
);
