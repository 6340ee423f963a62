import {
  type Authority,
  type QuorumRule,
  type Resource,
  resourceOf,
  type Setting,
  type Settings,
  type Use,
} from './authority.ts';
import { keyHolders, type Member, outsider, signatureOf } from './client.ts';
import { type Intent, type Model, newIntent } from './model.ts';
import { type Scene, type Script, unique } from './scripts.ts';
import { appId } from './server.ts';

/** One that the owner of a resource may have given: mostly enough signatures, for some rule that may be in force. */
export function drawSigners({ world, model }: Scene, resource: Resource): Member[] {
  const { random } = world;
  const rule = random.pick(rulesOf(model.authority, resource));
  const shuffled = [...rule.members].sort(() => random.fraction() - 0.5);
  const enough = shuffled.slice(0, rule.threshold);
  return random.weighted([
    [8, enough],
    [1, shuffled],
    [1, enough.slice(1)],
    [1, [...enough.slice(1), ...enough.slice(1)]],
    [1, [...enough.slice(1), outsider]],
    [1, [random.pick(keyHolders)]],
  ]);
}

function rulesOf(authority: Authority, resource: Resource): QuorumRule[] {
  if (resource === 'treasury')
    return authority.possible('owner').flatMap((owner) => authority.possible(owner));
  return authority.possible(resource === 'policy' ? 'first' : resource);
}

/** A change of one setting, drawn. */
function drawChange({ world: { random } }: Scene): {
  readonly setting: Setting;
  readonly value: Settings[Setting];
} {
  const setting = random.weighted<Setting>([
    [3, 'first'],
    [2, 'second'],
    [2, 'owner'],
    [2, 'guard'],
    [2, 'rules'],
  ]);
  if (setting === 'owner') return { setting, value: random.pick(['first', 'first', 'second'] as const) };
  if (setting === 'guard') return { setting, value: random.pick(['none', 'policy'] as const) };
  if (setting === 'rules') return { setting, value: random.pick(['ALLOW', 'ALLOW', 'DENY'] as const) };
  const members = keyHolders.filter(() => random.chance(0.7));
  const some = members.length === 0 ? [random.pick(keyHolders)] : members;
  return { setting, value: { members: some, threshold: random.between(1, some.length) } };
}

/** The request that makes a change. */
function requestFor({ ids }: Scene, setting: Setting, value: Settings[Setting]) {
  if (setting === 'owner') {
    const owner_id = ids.quorums[value as Settings['owner']];
    return { kind: 'wallet', path: { wallet_id: ids.treasury.id }, body: { owner_id } } as const;
  }
  if (setting === 'guard') {
    const policy_ids = value === 'policy' ? [ids.policy] : [];
    return { kind: 'wallet', path: { wallet_id: ids.treasury.id }, body: { policy_ids } } as const;
  }
  if (setting === 'rules') {
    const body = { rules: [ruleFor(value as Settings['rules'])] };
    return { kind: 'policy', path: { policy_id: ids.policy }, body } as const;
  }
  const { members, threshold } = value as QuorumRule;
  const body = {
    public_keys: members.map(({ publicKey }) => publicKey),
    authorization_threshold: threshold,
  };
  return { kind: 'quorum', path: { key_quorum_id: ids.quorums[setting] }, body } as const;
}

/** A rule about everything. */
export const ruleFor = (action: Settings['rules']) => ({ name: 'all', method: '*', action, conditions: [] });

const direct = { wallet: 'updateWallet', policy: 'updatePolicy', quorum: 'updateKeyQuorum' } as const;
const proposed = {
  wallet: 'updateWalletIntent',
  policy: 'updatePolicyIntent',
  quorum: 'updateKeyQuorumIntent',
} as const;

/** The owners change who may do what, while others use what they have. */
export const changeAuthority: Script = async (scene) => {
  const { world, model } = scene;
  const { setting, value } = drawChange(scene);
  const resource = resourceOf(setting);
  const { kind, path, body } = requestFor(scene, setting, value);
  const signers = drawSigners(scene, resource);
  const { authority } = model;
  const change = authority.begin(setting, value);
  model.beginWhatMayHappen();
  const use: Use = { signers: new Set(signers), from: authority.now(), until: undefined };
  const known = model.intents.filter((intent) => intent.resource === resource);
  // Not repeated: these operations take no idempotency keys.
  const outcome = await world.call(direct[kind], { path, body }, { signers, onOver: change.over });
  use.until = authority.now();
  if (outcome.kind === 'unknown') return;
  if (outcome.kind === 'refused') {
    change.refused();
    // Two changes of an owner at once: one of them finds another owner than it was authorized by.
    if (authority.mustChange(resource, use) && isForSignatures(outcome.code))
      world.fail(`the owners cannot change the ${setting}: ${outcome.message}`);
    return;
  }
  if (!authority.mayChange(resource, use)) world.fail(`the ${setting} was changed without enough signatures`);
  change.done();
  for (const intent of known) intent.isDismissed = true;
};

/** Whether signatures were refused. */
export const isForSignatures = (code: string): boolean =>
  code.includes('signature') || code === 'missing_or_empty_authorization_header';

/** Renames the treasury, which ends what was proposed about it. */
export const touchTreasury: Script = async (scene) => {
  const { world, model, ids } = scene;
  const signers = drawSigners(scene, 'treasury');
  const { authority } = model;
  const use: Use = { signers: new Set(signers), from: authority.now(), until: undefined };
  const known = model.intents.filter(({ resource }) => resource === 'treasury');
  const input = { path: { wallet_id: ids.treasury.id }, body: { display_name: `treasury ${unique()}` } };
  const outcome = await world.call('updateWallet', input, { signers });
  use.until = authority.now();
  if (outcome.kind === 'done') {
    if (!authority.mayChange('treasury', use)) world.fail('a wallet was changed without enough signatures');
    for (const intent of known) intent.isDismissed = true;
  }
  const isDenied = outcome.kind === 'refused' && isForSignatures(outcome.code);
  if (isDenied && authority.mustChange('treasury', use))
    world.fail(`the owners cannot change their wallet: ${outcome.message}`);
};

/** Proposes a change of who may do what. */
export const proposeChange: Script = async (scene) => {
  const { world, model } = scene;
  const { setting, value } = drawChange(scene);
  const { kind, path, body } = requestFor(scene, setting, value);
  const outcome = await world.call(proposed[kind], { path, body });
  if (outcome.kind !== 'done') return;
  const { intent_id: id, request_details: request } = outcome.body as unknown as ProposedIntent;
  model.intents.push({
    ...newIntent({ id, request, resource: resourceOf(setting), knownAt: model.authority.now() }),
    begin: () => model.authority.begin(setting, value),
  });
};

/** As much as clients need of an intent of any type. */
export interface ProposedIntent {
  readonly intent_id: string;
  readonly request_details: object;
}

/** A member, or the holder of another key, signs an intent. */
export const authorize: Script = (scene) => {
  const { world, model } = scene;
  // Mostly one of the newest: others have ended.
  const intent = model.intents.length === 0 ? undefined : world.random.pick(model.intents.slice(-3));
  if (intent === undefined) return Promise.resolve();
  const member = world.random.weighted<Member>([
    ...keyHolders.map((each) => [4, each] as const),
    [1, outsider],
  ]);
  return signIntent(scene, intent, member);
};

/** As many sign the newest intent as are needed, one after the other. */
export const agree: Script = async (scene) => {
  const { model, world } = scene;
  const intent = model.intents.at(-1);
  if (intent === undefined) return;
  const rule = world.random.pick(rulesOf(model.authority, intent.resource));
  const members = [...rule.members].sort(() => world.random.fraction() - 0.5).slice(0, rule.threshold);
  for (const member of members) {
    await signIntent(scene, intent, member);
    await world.scheduler.gate('next signature', world.life);
  }
};

async function signIntent(scene: Scene, intent: Intent, member: Member): Promise<void> {
  const { world, model } = scene;
  const { authority } = model;
  const { method, url, ...rest } = intent.request as { method: string; url: string; body?: object };
  const payload = { version: 1, method, url, body: rest.body ?? '', headers: { 'service-app-id': appId } };
  // From now on it may count, together with those that others add meanwhile.
  if (member !== outsider) intent.signers.add(member);
  const use: Use = { signers: intent.signers, from: authority.now(), until: undefined };
  const isOpen = !intent.isDismissed && !intent.isExecuted;
  if (isOpen) intent.uses.push(use);
  model.beginWhatMayHappen();
  const input = {
    path: { intent_id: intent.id },
    body: { signature: signatureOf(payload, member), timestamp: world.clock.nowMs },
  };
  let hasEnded = false;
  const onOver = (): void => {
    use.until = authority.now();
    if (hasEnded) settleChange(model, intent);
  };
  const outcome = await world.call('authorizeIntent', input, { onOver });
  if (outcome.kind === 'unknown') intent.isUnclear = true;
  else use.until ??= authority.now();
  if (outcome.kind === 'done') {
    const { status } = outcome.body;
    if (member === outsider) world.fail('a key outside the quorum has authorized an intent');
    if (status === 'executed') intent.isExecuted = true;
    const isRight = intent.uses.some((each) => authority.mayChange(intent.resource, each));
    if ((status === 'executed' || status === 'processing') && !isRight)
      world.fail(`an intent is ${status} with too few signatures`);
  }
  hasEnded = true;
  settleChange(model, intent);
}

/** Once no request can execute an intent any more, what is known about its change is. */
function settleChange(model: Model, intent: Intent): void {
  const { change } = intent;
  if (change === undefined || intent.uses.some(({ until }) => until === undefined)) return;
  intent.change = undefined;
  if (intent.isExecuted) {
    change.done();
    for (const each of model.intents) {
      const isAboutSame = each !== intent && each.resource === intent.resource;
      if (isAboutSame && each.knownAt < change.from) each.isDismissed = true;
    }
  } else if (intent.isUnclear) change.over();
  else change.refused();
  intent.isUnclear = false;
}
