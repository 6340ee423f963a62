import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { acmeSolanaWallet, acmeWallet } from '../../../mocks/wallets.ts';
import { operations } from '../../../src/generated/operations.ts';
import { attempt, call } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import {
  documentedOperations,
  exampleBodies,
  exampleInput,
  exampleParameters,
  hasBodyChoice,
} from './documented-operations.ts';

// Properties of every operation. Each response is validated against the document.
let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

describe('sent like the example in the document', () => {
  test.each(documentedOperations.map((operation) => [operation.operationId, operation] as const))(
    '%s gives a documented answer',
    async (id, operation) => {
      const bodies = exampleBodies(operation);
      expect(bodies.length).toBeGreaterThan(0);
      for (const body of bodies) {
        const { status } = await attempt(sandbox, id, { ...exampleParameters(operation), body });
        expect(status, JSON.stringify(body)).not.toBe(500);
      }
    },
  );
});

describe('with a property that is not in the document', () => {
  const withObjects = documentedOperations.flatMap((operation) => {
    const { body } = exampleInput(operation);
    return typeof body === 'object' && body !== null && !Array.isArray(body)
      ? [[operation.operationId, operation, body] as const]
      : [];
  });
  test.each(withObjects)('%s refuses it by name', async (id, operation, example) => {
    const body = { ...example, no_such_property: true };
    const answer = await attempt(sandbox, id, { ...exampleParameters(operation), body });
    expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_data' } });
    // For a body with several shapes, a missing field of the closest shape may be reported first.
    if (!hasBodyChoice(operation)) {
      const { error, error_description: text = error } = answer.body as Record<string, string>;
      expect(text).toContain('no_such_property');
    }
  });
});

describe('the resources of another app', () => {
  /** One of each kind in the sandbox's own app, by the name of the path parameter that takes its id. */
  async function resources(): Promise<Record<string, string>> {
    const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    const { body: user } = await call(sandbox, 'createUser', {
      body: { linked_accounts: [{ type: 'email', address: 'stranger@example.com' }] },
    });
    const { body: policy } = await call(sandbox, 'createPolicy', {
      body: {
        version: '1.0',
        name: 'own',
        chain_type: 'ethereum',
        rules: [
          {
            name: 'small',
            method: 'eth_signTransaction',
            action: 'ALLOW',
            conditions: [
              { field_source: 'ethereum_transaction', field: 'value', operator: 'lte', value: '1' },
            ],
          },
        ],
      },
    });
    const { body: set } = await call(sandbox, 'createConditionSet', { body: { name: 'own' } });
    const { body: items } = await call(sandbox, 'addConditionSetItems', {
      path: { condition_set_id: set.id },
      body: [{ value: 'own' }],
    });
    const { body: quorum } = await call(sandbox, 'createKeyQuorum', { body: { user_ids: [user.id] } });
    const { body: aggregation } = await call(sandbox, 'createAggregation', {
      body: {
        name: 'own',
        method: 'eth_signTransaction',
        metric: { field_source: 'ethereum_transaction', field: 'value', function: 'sum' },
        window: { type: 'rolling', seconds: 3600 },
      },
    });
    const { body: organization } = await call(sandbox, 'createOrganization', {
      body: { display_name: 'own', default_key_quorum_id: quorum.id },
    });
    return {
      wallet_id: wallet.id,
      user_id: user.id,
      policy_id: policy.id,
      rule_id: policy.rules[0]!.id,
      condition_set_id: set.id,
      condition_set_item_id: items[0]!.id,
      key_quorum_id: quorum.id,
      aggregation_id: aggregation.id,
      organization_id: organization.id,
      app_id: sandbox.appId,
    };
  }

  /** Ids of the same format as the real ones that do not exist. */
  function unknown(ids: Record<string, string>): Record<string, string> {
    return Object.fromEntries(
      Object.entries(ids).map(([name, id]) => [
        name,
        id.slice(0, -4) + (id.endsWith('zzzz') ? 'yyyy' : 'zzzz'),
      ]),
    );
  }

  test('the resources of another app cannot be distinguished from absent ones in any operation', async () => {
    const own = await resources();
    const { body: app } = (await sandbox.dispatcher
      .request({
        origin: sandbox.baseUrl,
        path: '/_sandbox/apps',
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ name: 'Stranger' }),
      })
      .then(async ({ body }) => ({ body: await body.json() }))) as { body: { id: string; secret: string } };
    const stranger: TestSandbox = { ...sandbox, appId: app.id, appSecret: app.secret };
    // Public operations respond to unauthenticated callers too.
    const withPath = documentedOperations.filter(
      ({ operationId, parameters = [] }) =>
        operations[operationId].security !== 'none' &&
        parameters.some(({ name, in: place }) => place === 'path' && name in own),
    );
    expect(withPath.length).toBeGreaterThan(80);
    for (const operation of withPath) {
      const { path, query, body } = exampleInput(operation);
      const ask = (ids: Record<string, string>) =>
        attempt(stranger, operation.operationId, { path: { ...path, ...ids }, query, body });
      const [foreign, absent] = [await ask(own), await ask(unknown(own))];
      const answerOf = ({ status, body }: { status: number; body: unknown }) => ({ status, body });
      expect(answerOf(foreign), operation.operationId).toEqual(answerOf(absent));
      expect([404, 400, 501], operation.operationId).toContain(foreign.status);
    }
    const page = await call(stranger, 'listWallets', {});
    expect(page.body.data).toEqual([]);
    for (const { external_id: id } of [acmeWallet, acmeSolanaWallet]) {
      const answer = await attempt(stranger, 'getWallet', { path: { wallet_id: `ext_wal_${id}` } });
      expect(answer.status).toBe(404);
    }
  });
});
