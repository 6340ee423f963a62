import { expect, test } from 'vitest';
import { aliceKey } from '../../../mocks/authorization-keys.ts';
import type { IntentResponse, KeyQuorum, Policy } from '../../../src/generated/schemas.ts';
import { messagePolicy, messageRule } from '../../contract/policies/rules.ts';
import { signIntent } from '../../support/intents.ts';
import { type ServingCustos, serveCustos, temporaryFolder } from '../../support/run-custos.ts';

// The process is killed while intents are executed, repeatedly, on the same folder.
const kills = process.env.TEST_LONG === undefined ? 2 : 50;
const clients = 3;
/** A policy holds a hundred rules. */
const mostRules = 90;

interface Proposed {
  readonly intent: IntentResponse;
  readonly policyId: string;
  readonly name: string;
  isAcknowledged: boolean;
}

function authorize(custos: ServingCustos, intent: IntentResponse) {
  const signature = signIntent(
    { prefix: 'service', appId: custos.ready.app_id },
    intent,
    aliceKey.privateKey,
  );
  const body = { signature, timestamp: Date.now() };
  return custos.call<IntentResponse>('POST', `/v1/intents/${intent.intent_id}/authorize`, body);
}

/** Proposes and executes rules until the server is killed. */
async function work(
  custos: ServingCustos,
  {
    ownerId,
    name,
    proposed,
    onDone,
  }: { ownerId: string; name: string; proposed: Proposed[]; onDone: () => void },
): Promise<void> {
  try {
    const { body: policy } = await custos.call<Policy>('POST', '/v1/policies', {
      ...messagePolicy(['x']),
      owner_id: ownerId,
    });
    for (let count = 0; count < mostRules; count += 1) {
      const rule = messageRule(`${name}-${count}`);
      const answer = await custos.call<IntentResponse>(
        'POST',
        `/v1/intents/policies/${policy.id}/rules`,
        rule,
      );
      const made = { intent: answer.body, policyId: policy.id, name: rule.name, isAcknowledged: false };
      proposed.push(made);
      const { status, text } = await authorize(custos, made.intent);
      if (status !== 200) throw new Error(`answered ${status}: ${text}`);
      made.isAcknowledged = true;
      onDone();
    }
  } catch (error) {
    if (custos.process.exitCode === null && custos.process.signalCode === null && !custos.process.killed)
      throw error;
  }
}

test(`${kills} kills while intents are executed leave each executed once or not at all`, async () => {
  const data = temporaryFolder();
  const proposed: Proposed[] = [];
  for (let kill = 0; kill < kills; kill += 1) {
    const custos = await serveCustos(['sandbox', '--data', data, '--quiet']);
    const { body: owner } = await custos.call<KeyQuorum>('POST', '/v1/key_quorums', {
      public_keys: [aliceKey.publicKey],
    });
    const { promise: isWarm, resolve: onDone } = Promise.withResolvers<void>();
    const working = Array.from({ length: clients }, (_, client) =>
      work(custos, { ownerId: owner.id, name: `${kill}-${client}`, proposed, onDone }),
    );
    // When the first is done, all others are in progress. Each kill comes a little later than the previous one.
    await Promise.race([isWarm, Promise.all(working)]);
    await new Promise((resolve) => setTimeout(resolve, 7 * (kill % 10)));
    await custos.stop('SIGKILL');
    await Promise.all(working);
  }
  expect(proposed.filter(({ isAcknowledged }) => isAcknowledged).length).toBeGreaterThanOrEqual(kills);

  await using custos = await serveCustos(['sandbox', '--data', data, '--quiet']);
  const timesDone = async ({ policyId, name }: Proposed): Promise<number> => {
    const { body } = await custos.call<Policy>('GET', `/v1/policies/${policyId}`);
    return body.rules.filter((rule) => rule.name === name).length;
  };
  for (const one of proposed) {
    const { body } = await custos.call<IntentResponse>('GET', `/v1/intents/${one.intent.intent_id}`);
    // Acknowledged changes exist; others exist completely or not at all.
    expect(['pending', 'executed']).toContain(body.status);
    if (one.isAcknowledged) expect(body.status).toBe('executed');
    expect(await timesDone(one)).toBe(body.status === 'executed' ? 1 : 0);
    if (body.status !== 'pending') continue;
    const { status, body: again } = await authorize(custos, one.intent);
    expect([status, again.status]).toEqual([200, 'executed']);
    expect(await timesDone(one)).toBe(1);
  }
}, 600_000);
