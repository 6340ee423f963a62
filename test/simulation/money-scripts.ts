import { hash } from 'node:crypto';
import { type Member, members, outsider, signatureOf } from './client.ts';
import { cap, type Intent, isQuorum, mayBeDenied, type Payment, type Spending } from './model.ts';
import { callUntilKnown, drawSigners, read, type Scene, type Script, unique } from './scripts.ts';
import { appId } from './server.ts';

export const base = 'eip155:8453';
export const solana = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
export const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';

/** An address that nothing else pays to. */
function newAddress({ world }: Scene): string {
  return `0x${hash('sha256', `${world.seed} recipient ${unique()}`).slice(0, 40)}`;
}

const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

/** Base58 of 32 bytes. */
function newSolanaAddress({ world }: Scene): string {
  let number = BigInt(`0x${hash('sha256', `${world.seed} recipient ${unique()}`)}`);
  let text = '';
  for (; number > 0n; number /= 58n) text = alphabet[Number(number % 58n)] + text;
  return text;
}

/** An amount of few digits, as text and in base units. */
function drawAmount(
  { world }: Scene,
  decimals: number,
): { readonly text: string; readonly rawAmount: bigint } {
  const thousandths = world.random.between(1, 400);
  return {
    text: `0.${String(thousandths).padStart(3, '0')}`,
    rawAmount: BigInt(thousandths) * 10n ** BigInt(decimals - 3),
  };
}

function newPayment(
  { model }: Scene,
  part: Pick<Payment, 'caip2' | 'recipient' | 'rawAmount' | 'isAuthorized'>,
): Payment {
  const payment: Payment = { ...part, knowledge: 'unknown', isOver: false };
  model.payments.push(payment);
  return payment;
}

const requireRefused = ({ world }: Scene, payment: Payment, what: string): void => {
  if (!payment.isAuthorized) world.fail(`${what} was accepted without enough signatures`);
};

/** A transfer by the operation of that name. */
export const transfer: Script = async (scene) => {
  const { world, ids } = scene;
  const from = world.random.weighted([
    [3, 'hot'],
    [3, 'treasury'],
    [2, 'sol'],
  ] as const);
  const isSolana = from === 'sol';
  const { text, rawAmount } = drawAmount(scene, isSolana ? 9 : 18);
  const recipient = isSolana ? newSolanaAddress(scene) : newAddress(scene);
  const owners = from === 'treasury' ? drawSigners(world) : undefined;
  const isAuthorized = owners === undefined || owners.isEnough;
  const payment = newPayment(scene, { caip2: isSolana ? solana : base, recipient, rawAmount, isAuthorized });
  const body = {
    source: { asset: isSolana ? 'sol' : 'eth', chain: isSolana ? 'solana' : 'base', amount: text },
    destination: { address: recipient },
  };
  const outcome = await callUntilKnown(
    scene,
    'transferFromWallet',
    { path: { wallet_id: ids[from].id }, body },
    owners === undefined ? {} : { signers: owners.signers },
  );
  if (outcome.kind === 'refused') payment.knowledge = 'refused';
  if (outcome.kind !== 'done') return;
  requireRefused(scene, payment, 'a transfer');
  payment.knowledge = 'acknowledged';
  payment.action = { walletId: ids[from].id, id: outcome.body.id };
};

/** A transaction by the JSON-RPC method. */
export const sendTransaction: Script = async (scene) => {
  const { world, ids } = scene;
  const from = world.random.pick(['hot', 'treasury'] as const);
  const { rawAmount } = drawAmount(scene, 18);
  const owners = from === 'treasury' ? drawSigners(world) : undefined;
  const isAuthorized = owners === undefined || owners.isEnough;
  const recipient = newAddress(scene);
  const payment = newPayment(scene, { caip2: base, recipient, rawAmount, isAuthorized });
  const outcome = await callUntilKnown(
    scene,
    'walletRpc',
    {
      path: { wallet_id: ids[from].id },
      body: {
        method: 'eth_sendTransaction',
        caip2: base,
        params: { transaction: { to: recipient, value: `0x${rawAmount.toString(16)}` } },
      },
    },
    owners === undefined ? {} : { signers: owners.signers },
  );
  if (outcome.kind === 'refused') payment.knowledge = 'refused';
  if (outcome.kind !== 'done') return;
  requireRefused(scene, payment, 'eth_sendTransaction');
  payment.knowledge = 'acknowledged';
  const { data } = outcome.body as { data: { transaction_id?: string } };
  if (data.transaction_id !== undefined) payment.transactionId = data.transaction_id;
};

/** A signature that counts towards the total of the policy. */
export const spend: Script = async (scene) => {
  const { world, model, ids } = scene;
  const value = BigInt(world.random.between(1, Number(cap.rawAmount / 2n)));
  const spending: Spending = { value, atMs: [], knowledge: 'unknown' };
  model.spendings.push(spending);
  const transaction = { chain_id: 1, to: newAddress(scene), value: `0x${value.toString(16)}` };
  const outcome = await callUntilKnown(
    scene,
    'walletRpc',
    { path: { wallet_id: ids.capped.id }, body: { method: 'eth_signTransaction', params: { transaction } } },
    {},
    (atMs) => spending.atMs.push(atMs),
  );
  if (outcome.kind === 'done') spending.knowledge = 'acknowledged';
  if (outcome.kind !== 'refused') return;
  if (outcome.code !== 'policy_violation') world.fail(`a spending was refused with ${outcome.code}`);
  else if (!mayBeDenied(model.spendings, spending)) world.fail('a spending that fits was denied');
  spending.knowledge = 'refused';
};

/** Proposes a transfer from the treasury. */
export const propose: Script = async (scene) => {
  const { world, model, ids } = scene;
  const { text, rawAmount } = drawAmount(scene, 18);
  const recipient = newAddress(scene);
  const payment = newPayment(scene, { caip2: base, recipient, rawAmount, isAuthorized: false });
  const body = {
    source: { asset: 'eth', chain: 'base', amount: text },
    destination: { address: recipient },
  };
  const outcome = await world.call('createWalletTransferIntent', {
    path: { wallet_id: ids.treasury.id },
    body,
  });
  if (outcome.kind !== 'done') return;
  const { intent_id: id, request_details: request, created_at: createdAtMs } = outcome.body;
  payment.intent = { id, payment, request, createdAtMs, signers: new Set() };
  payment.knowledge = 'acknowledged';
  model.intents.push(payment.intent);
};

/** A member, or the holder of another key, signs an intent. */
export const authorize: Script = async (scene) => {
  const { world, model } = scene;
  if (model.intents.length === 0) return;
  // Mostly one of the newest: others have ended.
  const intent = world.random.pick(model.intents.slice(-2));
  const member = world.random.weighted<Member>([...members.map((each) => [4, each] as const), [1, outsider]]);
  const { method, url, ...rest } = intent.request as { method: string; url: string; body?: object };
  const payload = { version: 1, method, url, body: rest.body ?? '', headers: { 'service-app-id': appId } };
  // From now on it may count.
  const hadSigned = intent.signers.has(member);
  if (member !== outsider) sign(intent, member);
  const outcome = await world.call('authorizeIntent', {
    path: { intent_id: intent.id },
    body: { signature: signatureOf(payload, member), timestamp: world.clock.nowMs },
  });
  if (outcome.kind === 'refused') return;
  if (outcome.kind === 'done' && member === outsider)
    world.fail('a key outside the quorum has authorized an intent');
  if (outcome.kind === 'done' && !hadSigned && !isQuorum(intent.signers) && outcome.body.status !== 'pending')
    world.fail(`an intent is ${outcome.body.status} with too few signatures`);
};

function sign(intent: Intent, member: Member): void {
  intent.signers.add(member);
  if (isQuorum(intent.signers)) intent.payment.isAuthorized = true;
}

/** Swaps on a simulated chain, whose books the judge sums. */
export const swap: Script = async (scene) => {
  const { world, ids } = scene;
  const amount = BigInt(world.random.between(1, 50)) * 10n ** 15n;
  const outcome = await callUntilKnown(
    scene,
    'executeWalletSwap',
    {
      path: { wallet_id: ids.hot.id },
      body: {
        source: { asset_address: 'native', caip2: base },
        destination: { asset_address: usdc },
        base_amount: String(amount),
        slippage_bps: 100,
      },
    },
    {},
  );
  if (outcome.kind !== 'done') return;
  const { id } = outcome.body as { id: string };
  await read(scene, 'getWalletAction', { path: { wallet_id: ids.hot.id, action_id: id } });
};
