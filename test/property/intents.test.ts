import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { aliceKey, bobKey, carolKey } from '../../mocks/authorization-keys.ts';
import type { IntentResponse } from '../../src/generated/schemas.ts';
import { messagePolicy } from '../contract/policies/rules.ts';
import { figureSize } from '../figures/figure.ts';
import { attempt, call } from '../support/call.ts';
import { authorizationOf, intentEvents } from '../support/intents.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';

// Random histories of intents, run twice: by the server, and by an independent model of §7.3.
const keys = [aliceKey, bobKey, carolKey];
const runs = figureSize({ short: 30, long: 2000 });

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

type Subject = 'first policy' | 'second policy' | 'quorum';

type Step =
  | { do: 'rename'; subject: 'first policy' | 'second policy'; name: string; lifeMs: number | undefined }
  | { do: 'propose a rule that lacks something'; subject: 'first policy' | 'second policy' }
  | { do: 'propose a threshold'; threshold: number }
  | { do: 'sign'; intent: number; member: number }
  | { do: 'reject'; intent: number }
  | { do: 'change'; subject: Subject; name: string }
  | { do: 'change members'; members: number[]; threshold: number }
  | { do: 'wait'; ms: number };

const policies = fc.constantFrom('first policy' as const, 'second policy' as const);
const names = fc.stringMatching(/^[a-z]{1,8}$/);
const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('rename' as const),
      subject: policies,
      name: names,
      lifeMs: fc.option(fc.integer({ min: 0, max: 20_000 }), { nil: undefined }),
    }),
  },
  fc.record({ do: fc.constant('propose a rule that lacks something' as const), subject: policies }),
  fc.record({ do: fc.constant('propose a threshold' as const), threshold: fc.integer({ min: 1, max: 3 }) }),
  {
    weight: 12,
    arbitrary: fc.record({ do: fc.constant('sign' as const), intent: fc.nat(8), member: fc.nat(2) }),
  },
  fc.record({ do: fc.constant('reject' as const), intent: fc.nat(8) }),
  fc.record({
    do: fc.constant('change' as const),
    subject: fc.constantFrom<Subject>('first policy', 'second policy', 'quorum'),
    name: names,
  }),
  fc.uniqueArray(fc.nat(2), { minLength: 1, maxLength: 3 }).chain((members) =>
    fc.record({
      do: fc.constant('change members' as const),
      members: fc.constant(members),
      threshold: fc.integer({ min: 1, max: members.length }),
    }),
  ),
  fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(1, 5_000, 20_000) }),
);

type Status = IntentResponse['status'];

interface ModelIntent {
  readonly subject: Subject;
  readonly effect: { name: string } | { threshold: number } | 'cannot be';
  readonly signed: Set<number>;
  readonly expiresAtMs: number;
  status: Status;
}

/** What is true, in the simplest words. */
class Model {
  members = [0, 1, 2];
  threshold = 2;
  readonly names = new Map<Subject, string>();
  readonly intents: ModelIntent[] = [];

  end(nowMs: number): void {
    for (const intent of this.intents)
      if (intent.status === 'pending' && intent.expiresAtMs < nowMs) intent.status = 'expired';
  }

  dismiss(subject: Subject): void {
    for (const intent of this.intents)
      if (intent.subject === subject && intent.status === 'pending') intent.status = 'dismissed';
  }

  /** The response to a signature: a status of the intent, or an error. */
  sign(intent: ModelIntent, member: number): string {
    if (intent.status !== 'pending') return '400 invalid_state';
    if (!this.members.includes(member)) return '401 zero_correct_authorization_signatures';
    intent.signed.add(member);
    if (this.members.filter((each) => intent.signed.has(each)).length < this.threshold) return 'pending';
    const { effect } = intent;
    if (effect === 'cannot be') {
      intent.status = 'failed';
      return 'failed';
    }
    intent.status = 'executed';
    this.dismiss(intent.subject);
    if ('name' in effect) this.names.set(intent.subject, effect.name);
    else this.threshold = effect.threshold;
    return 'executed';
  }
}

/** The server's side of a history. */
async function openWorld() {
  const { body: quorum } = await call(sandbox, 'createKeyQuorum', {
    body: { public_keys: keys.map(({ publicKey }) => publicKey), authorization_threshold: 2 },
  });
  const newPolicy = async () =>
    (await call(sandbox, 'createPolicy', { body: { ...messagePolicy(['x']), owner_id: quorum.id } })).body;
  const [first, second] = [await newPolicy(), await newPolicy()];
  const ids = { 'first policy': first.id, 'second policy': second.id, quorum: quorum.id };
  return { ids, intents: [] as IntentResponse[] };
}

type World = Awaited<ReturnType<typeof openWorld>>;

async function take(step: Step, model: Model, world: World): Promise<void> {
  const nowMs = () => sandbox.clock.now();
  const allSign = { signWith: keys.map(({ privateKey }) => privateKey) };
  const proposed = (
    answer: { body: unknown },
    intent: Pick<ModelIntent, 'subject' | 'effect'>,
    lifeMs?: number,
  ) => {
    world.intents.push(answer.body as IntentResponse);
    const expiresAtMs = nowMs() + (lifeMs ?? 72 * 60 * 60_000);
    model.intents.push({ ...intent, signed: new Set(), expiresAtMs, status: 'pending' });
  };
  switch (step.do) {
    case 'rename': {
      const { subject, name, lifeMs } = step;
      const input = { path: { policy_id: world.ids[subject] }, body: { name } };
      const options = lifeMs === undefined ? {} : { expiryMs: nowMs() + lifeMs };
      return proposed(
        await call(sandbox, 'updatePolicyIntent', input, options),
        { subject, effect: { name } },
        lifeMs,
      );
    }
    case 'propose a rule that lacks something': {
      const path = { policy_id: world.ids[step.subject] };
      const body = { name: 'lacks', conditions: [{ field_source: 'message' as const, value: 'x' }] };
      const answer = await call(sandbox, 'createPolicyRuleIntent', { path, body });
      return proposed(answer, { subject: step.subject, effect: 'cannot be' });
    }
    case 'propose a threshold': {
      const { threshold } = step;
      const answer = await attempt(sandbox, 'updateKeyQuorumIntent', {
        path: { key_quorum_id: world.ids.quorum },
        body: { authorization_threshold: threshold },
      });
      expect(answer.status).toBe(threshold > model.members.length ? 400 : 200);
      if (answer.status === 200) proposed(answer, { subject: 'quorum', effect: { threshold } });
      return;
    }
    case 'sign': {
      const intent = world.intents[step.intent];
      if (intent === undefined) return;
      const input = authorizationOf(sandbox, intent, keys[step.member]!.privateKey);
      const { status, body } = await attempt(sandbox, 'authorizeIntent', input);
      const outcome =
        status === 200 ? (body as IntentResponse).status : `${status} ${(body as { code: string }).code}`;
      expect(outcome).toBe(model.sign(model.intents[step.intent]!, step.member));
      return;
    }
    case 'reject': {
      const [intent, modelIntent] = [world.intents[step.intent], model.intents[step.intent]];
      if (intent === undefined || modelIntent === undefined) return;
      const { status } = await attempt(sandbox, 'rejectIntent', { path: { intent_id: intent.intent_id } });
      expect(status).toBe(modelIntent.status === 'pending' ? 200 : 400);
      if (modelIntent.status === 'pending') modelIntent.status = 'rejected';
      return;
    }
    case 'change': {
      const { subject, name } = step;
      await (subject === 'quorum'
        ? call(
            sandbox,
            'updateKeyQuorum',
            { path: { key_quorum_id: world.ids.quorum }, body: { display_name: name } },
            allSign,
          )
        : call(
            sandbox,
            'updatePolicy',
            { path: { policy_id: world.ids[subject] }, body: { name } },
            allSign,
          ));
      if (subject !== 'quorum') model.names.set(subject, name);
      return model.dismiss(subject);
    }
    case 'change members': {
      const { members, threshold } = step;
      const body = {
        public_keys: members.map((member) => keys[member]!.publicKey),
        authorization_threshold: threshold,
      };
      await call(sandbox, 'updateKeyQuorum', { path: { key_quorum_id: world.ids.quorum }, body }, allSign);
      Object.assign(model, { members, threshold });
      return model.dismiss('quorum');
    }
    case 'wait':
      sandbox.clock.advance(step.ms);
      return model.end(nowMs());
  }
}

/** The events of one intent's history. */
function eventsOf({ signed, status }: ModelIntent): string[] {
  const last = ['executed', 'failed', 'rejected'].includes(status) ? [`intent.${status}`] : [];
  return ['intent.created', ...[...signed].map(() => 'intent.authorized'), ...last];
}

async function agree(model: Model, world: World): Promise<void> {
  for (const [index, intent] of world.intents.entries()) {
    const { body } = await call(sandbox, 'getIntent', { path: { intent_id: intent.intent_id } });
    const reported = model.intents[index]!;
    expect(body.status, `intent ${index}`).toBe(reported.status);
    expect('action_result' in body).toBe(['executed', 'failed'].includes(reported.status));
    expect('rejected_at' in body).toBe(reported.status === 'rejected');
    expect('dismissed_at' in body).toBe(reported.status === 'dismissed');
    expect((await intentEvents(sandbox, intent.intent_id)).map(({ type }) => type)).toEqual(
      eventsOf(reported),
    );
  }
  for (const [subject, name] of model.names) {
    const { body } = await call(sandbox, 'getPolicy', { path: { policy_id: world.ids[subject] } });
    expect(body.name).toBe(name);
    expect(body.rules).toHaveLength(1);
  }
  const { body } = await call(sandbox, 'getKeyQuorum', { path: { key_quorum_id: world.ids.quorum } });
  expect(body.authorization_threshold).toBe(model.threshold);
}

test(`${runs} random histories of intents match the model`, { timeout: 3_600_000 }, async () => {
  const reached = new Set<Status>();
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { minLength: 10, maxLength: 40 }), async (history) => {
      const [model, world] = [new Model(), await openWorld()];
      for (const step of history) await take(step, model, world);
      await agree(model, world);
      for (const { status } of model.intents) reached.add(status);
    }),
    { numRuns: runs, seed: 7 },
  );
  // The histories have been everywhere.
  expect([...reached].sort()).toEqual(['dismissed', 'executed', 'expired', 'failed', 'pending', 'rejected']);
});
