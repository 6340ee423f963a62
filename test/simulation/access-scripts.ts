import type { Creation, KnownWallet } from './model.ts';
import { callUntilKnown, REPEAT_MS, read, type Script, unique } from './scripts.ts';
import { hasSigned } from './signed-messages.ts';

const chainTypes = [
  'ethereum',
  'solana',
  'bitcoin-segwit',
  'tron',
  'cosmos',
  'stellar',
  'sui',
  'aptos',
  'near',
  'ton',
] as const;

/** Creates a wallet under an id of its own, sometimes one that another client also uses. */
export const createWallet: Script = async (scene) => {
  const { world, model } = scene;
  const isContended = world.random.chance(0.2) && model.creations.length > 0;
  const creation: Creation = isContended
    ? world.random.pick(model.creations)
    : { externalId: `w-${unique()}`, chainType: world.random.pick(chainTypes), knowledge: 'unknown' };
  if (!isContended) model.creations.push(creation);
  const body = { chain_type: creation.chainType, external_id: creation.externalId };
  const outcome = await callUntilKnown(scene, 'createWallet', { body }, {});
  if (outcome.kind !== 'done') return;
  const { id, address, chain_type: chainType } = outcome.body;
  if (creation.knowledge === 'acknowledged') world.fail(`two wallets have the id ${creation.externalId}`);
  creation.knowledge = 'acknowledged';
  model.wallets.push({ id, address, chainType, archived: 'refused' });
};

/** Sends a request again, or another one with its key. */
export const repeat: Script = async ({ world, model }) => {
  const { nowMs } = world.clock;
  const recent = model.repeatables.filter(({ atMs }) => Math.abs(nowMs - atMs) < REPEAT_MS);
  if (recent.length === 0) return;
  const earlier = world.random.pick(recent);
  const isChanged = world.random.chance(0.3);
  const outcome = await earlier.repeat(
    isChanged ? { chain_type: 'ethereum', display_name: `${unique()}` } : undefined,
  );
  if (outcome.kind === 'unknown') return;
  // The clock may have moved on while the request waited.
  if (isChanged) {
    if (outcome.kind === 'done') world.fail('another request was accepted under a used idempotency key');
    return;
  }
  if (outcome.kind === 'refused') {
    if (!outcome.message.includes('still in progress'))
      world.fail(`a repetition was refused: ${outcome.message}`);
    return;
  }
  if (!outcome.isReplay || outcome.text !== earlier.text)
    world.fail(`a repetition has another answer: ${outcome.text} instead of ${earlier.text}`);
};

const mayBeArchived = ({ archived }: KnownWallet): boolean => archived !== 'refused';

/** Archives a wallet; wallets of this kind are only used by `signMessage`. */
export const archive: Script = async (scene) => {
  const { world, model } = scene;
  const left = model.wallets.filter((wallet) => !mayBeArchived(wallet));
  if (left.length < 3) return;
  const wallet = world.random.pick(left);
  wallet.archived = 'unknown';
  const outcome = await world.call('archiveWallet', { path: { wallet_id: wallet.id } });
  if (outcome.kind === 'done') wallet.archived = 'acknowledged';
  if (outcome.kind === 'refused') world.fail(`a wallet could not be archived: ${outcome.message}`);
};

/** Signs a message, which anybody can verify. */
export const signMessage: Script = async (scene) => {
  const { world, model } = scene;
  const wallets = model.wallets.filter(({ chainType }) => chainType === 'ethereum');
  if (wallets.length === 0) return;
  const wallet = world.random.pick(wallets);
  const message = `message ${unique()}`;
  const wasArchived = wallet.archived === 'acknowledged';
  const outcome = await callUntilKnown(
    scene,
    'walletRpc',
    {
      path: { wallet_id: wallet.id },
      body: { method: 'personal_sign', params: { message, encoding: 'utf-8' } },
    },
    {},
  );
  if (outcome.kind === 'refused' && !mayBeArchived(wallet))
    world.fail(`a message was refused: ${outcome.message}`);
  if (outcome.kind !== 'done') return;
  if (wasArchived) world.fail('an archived wallet has signed');
  const { data } = outcome.body as { data: { signature: string } };
  if (!hasSigned(wallet.address, message, data.signature)) world.fail('a signature is not of its wallet');
};

/** Creates a user under an email address that others may take at the same time. */
export const createUser: Script = async (scene) => {
  const { world, model } = scene;
  const known = [...model.users.keys()];
  const email =
    known.length > 0 && world.random.chance(0.4) ? world.random.pick(known) : `user-${unique()}@acme.example`;
  const user = model.users.get(email) ?? { ids: new Set<string>(), tried: 0 };
  model.users.set(email, user);
  user.tried += 1;
  const outcome = await world.call('createUser', {
    body: { linked_accounts: [{ type: 'email', address: email }] },
  });
  if (outcome.kind !== 'done') return;
  user.ids.add(outcome.body.id);
  const found = await read(scene, 'getUserByEmailAddress', { body: { address: email } });
  if (found.kind === 'done') user.ids.add((found.body as { id: string }).id);
  else world.fail(`the user ${email} was acknowledged and is not found`);
  if (user.ids.size > 1) world.fail(`two users have the address ${email}`);
};
