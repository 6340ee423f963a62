import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aliceKey, bobKey, carolKey } from '../../../mocks/authorization-keys.ts';
import type { OperationId } from '../../../src/generated/operations.ts';
import type { IntentResponse, Policy, Wallet } from '../../../src/generated/schemas.ts';
import { messagePolicy } from '../../contract/policies/rules.ts';
import { figureSize, isLong } from '../../figures/figure.ts';
import { databaseKinds } from '../../support/databases.ts';
import { signIntent } from '../../support/intents.ts';
import { openOperations, type RunInput, type TestOperations } from '../../support/run-operations.ts';

const [alice, bob, carol] = [aliceKey.privateKey, bobKey.privateKey, carolKey.privateKey];
const rounds = figureSize({ short: 6, long: 300 });

// Concurrent requests, on separate connections if the database has several.
describe.each(databaseKinds)('%s', { timeout: isLong ? 3_600_000 : 30_000 }, (kind) => {
  let operations: TestOperations;
  let owners: { treasury: string; sole: string };
  beforeAll(async () => {
    operations = await openOperations(kind);
    owners = {
      treasury: await newQuorum([aliceKey, bobKey, carolKey], 2),
      sole: await newQuorum([carolKey], 1),
    };
  });
  afterAll(() => operations[Symbol.asyncDispose]());

  const run = async <Body>(id: OperationId, input: RunInput): Promise<{ status: number; body: Body }> =>
    (await operations.run(id, input)) as { status: number; body: Body };
  const done = async <Body>(id: OperationId, input: RunInput): Promise<Body> => {
    const { status, body } = await run<Body>(id, input);
    expect(status, `${id} ${JSON.stringify(body)}`).toBe(200);
    return body;
  };
  const newQuorum = async (keys: { publicKey: string }[], threshold: number) => {
    const body = { public_keys: keys.map(({ publicKey }) => publicKey), authorization_threshold: threshold };
    return (await done<{ id: string }>('createKeyQuorum', { body })).id;
  };
  const newPolicy = () =>
    done<Policy>('createPolicy', { body: { ...messagePolicy(['x']), owner_id: owners.treasury } });
  const readPolicy = (id: string) => done<Policy>('getPolicy', { path: { policy_id: id } });
  const readIntent = ({ intent_id: id }: IntentResponse) =>
    done<IntentResponse>('getIntent', { path: { intent_id: id } });
  const proposeRule = (id: string, word = 'y') =>
    done<IntentResponse>('createPolicyRuleIntent', {
      path: { policy_id: id },
      body: messagePolicy([word]).rules[0],
    });
  /** Statuses of the intent, or the code of the refusal. */
  const signing = async (intent: IntentResponse, key: string): Promise<string> => {
    const signature = signIntent({ prefix: 'service', appId: operations.app.id }, intent, key);
    const body = { signature, timestamp: operations.services.clock.now() };
    const answer = await run<IntentResponse & { code: string }>('authorizeIntent', {
      path: { intent_id: intent.intent_id },
      body,
    });
    return answer.status === 200 ? answer.body.status : answer.body.code;
  };
  const outcome = async (answer: Promise<{ status: number; body: unknown }>): Promise<string> => {
    const { status, body } = await answer;
    return status === 200 ? 'done' : ((body as { code?: string }).code ?? String(status));
  };
  const eventsOf = async ({ intent_id: id }: IntentResponse): Promise<string[]> => {
    const rows = await operations.database.orm.em
      .fork()
      .execute<{ type: string }[]>('select type from outbox_events where resource_id = ? order by sequence', [
        id,
      ]);
    return rows.map(({ type }) => type.slice('intent.'.length));
  };

  test('two members who send the last signature concurrently execute the intent once', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const policy = await newPolicy();
      const intent = await proposeRule(policy.id);
      expect(await signing(intent, alice)).toBe('pending');
      const outcomes = await Promise.all([
        signing(intent, bob),
        signing(intent, carol),
        signing(intent, alice),
      ]);
      expect(outcomes.slice(0, 2).sort()).toEqual(['executed', 'invalid_state']);
      expect((await readPolicy(policy.id)).rules).toHaveLength(2);
      expect(await eventsOf(intent)).toEqual(['created', 'authorized', 'authorized', 'executed']);
    }
  });

  test('two concurrent signatures both count, and the intent is executed once', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const policy = await newPolicy();
      const intent = await proposeRule(policy.id);
      const outcomes = await Promise.all([signing(intent, alice), signing(intent, bob)]);
      expect(outcomes.sort()).toEqual(['executed', 'pending']);
      expect((await readPolicy(policy.id)).rules).toHaveLength(2);
    }
  });

  test('of two intents about one resource with concurrent last signatures, one wins', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const policy = await newPolicy();
      const intents = [await proposeRule(policy.id, 'a'), await proposeRule(policy.id, 'b')];
      for (const intent of intents) await signing(intent, alice);
      const outcomes = await Promise.all(intents.map((intent) => signing(intent, bob)));
      expect(outcomes.sort()).toEqual(['executed', 'invalid_state']);
      const statuses = (await Promise.all(intents.map(readIntent))).map(({ status }) => status);
      expect(statuses.sort()).toEqual(['dismissed', 'executed']);
      expect((await readPolicy(policy.id)).rules).toHaveLength(2);
    }
  });

  test('the last signature and a rejection, a change or the archiving of the wallet exclude each other', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const policy = await newPolicy();
      const rejected = await proposeRule(policy.id);
      await signing(rejected, alice);
      const path = { intent_id: rejected.intent_id };
      const [signed, reject] = await Promise.all([
        signing(rejected, bob),
        outcome(run('rejectIntent', { path })),
      ]);
      const { status } = await readIntent(rejected);
      expect([signed, reject, status]).toEqual(
        signed === 'executed'
          ? ['executed', 'invalid_state', 'executed']
          : ['invalid_state', 'done', 'rejected'],
      );

      const changed = await proposeRule(policy.id, 'z');
      await signing(changed, alice);
      const direct = {
        path: { policy_id: policy.id },
        body: { name: `round ${round}` },
        signWith: [alice, bob],
      };
      const [late, change] = await Promise.all([signing(changed, bob), outcome(run('updatePolicy', direct))]);
      expect(change).toBe('done');
      expect([late, (await readIntent(changed)).status]).toEqual(
        late === 'executed' ? ['executed', 'executed'] : ['invalid_state', 'dismissed'],
      );

      const wallet = await done<Wallet>('createWallet', {
        body: { chain_type: 'ethereum', owner_id: owners.sole },
      });
      const message = { method: 'personal_sign', params: { encoding: 'utf-8', message: 'x' } };
      const rpc = { path: { wallet_id: wallet.id }, body: message };
      const used = await done<IntentResponse>('createWalletRpcIntent', rpc);
      const [use, archive] = await Promise.all([
        signing(used, carol),
        outcome(run('archiveWallet', { path: { wallet_id: wallet.id } })),
      ]);
      expect(archive).toBe('done');
      expect([use, (await readIntent(used)).status]).toEqual(
        use === 'executed' ? ['executed', 'executed'] : ['invalid_state', 'dismissed'],
      );
    }
  });

  test('a member who is removed during the last signature counts or not, consistently', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const quorumId = await newQuorum([aliceKey, bobKey, carolKey], 2);
      const policy = await done<Policy>('createPolicy', {
        body: { ...messagePolicy(['x']), owner_id: quorumId },
      });
      const intent = await proposeRule(policy.id);
      await signing(intent, alice);
      const removal = {
        path: { key_quorum_id: quorumId },
        body: { public_keys: [bobKey.publicKey, carolKey.publicKey] },
        signWith: [alice, bob],
      };
      const [signed, change] = await Promise.all([
        signing(intent, bob),
        outcome(run('updateKeyQuorum', removal)),
      ]);
      expect(change).toBe('done');
      expect(['executed', 'pending']).toContain(signed);
      expect((await readIntent(intent)).status).toBe(signed);
      expect((await readPolicy(policy.id)).rules).toHaveLength(signed === 'executed' ? 2 : 1);
      if (signed === 'pending') expect(await signing(intent, carol)).toBe('executed');
    }
  });

  test('a proposal concurrent with a direct change is dismissed by it or created after it', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const policy = await newPolicy();
      const direct = {
        path: { policy_id: policy.id },
        body: { name: `round ${round}` },
        signWith: [alice, bob],
      };
      const [intent, change] = await Promise.all([
        proposeRule(policy.id),
        outcome(run('updatePolicy', direct)),
      ]);
      expect(change).toBe('done');
      expect(['pending', 'dismissed']).toContain((await readIntent(intent)).status);
    }
  });
});
