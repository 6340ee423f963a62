import { hash } from 'node:crypto';
import type { Use } from './authority.ts';
import { drawSigners, isForSignatures, type ProposedIntent } from './authority-scripts.ts';
import type { Outcome } from './client.ts';
import { cap, mayBeDenied, newIntent, type Payment, type Spending } from './model.ts';
import { callUntilKnown, read, type Scene, type Script, unique } from './scripts.ts';

export const base = 'eip155:8453';
export const solana = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
export const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';

/** The wallets that send EVM transactions. */
export const payingWallets = ['hot', 'treasury', 'saver', 'payer'] as const;
export type PayingWallet = (typeof payingWallets)[number];

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
  part: Pick<Payment, 'caip2' | 'recipient' | 'rawAmount' | 'mayBe'>,
): Payment {
  const payment: Payment = { ...part, knowledge: 'unknown', isOver: false };
  model.payments.push(payment);
  return payment;
}

/** How a payment from a wallet is authorized: the treasury needs its owners. */
function authorization(scene: Scene, from: PayingWallet | 'sol') {
  const { world, model } = scene;
  if (from !== 'treasury') return { options: {}, mayBe: () => true, end: () => undefined };
  const signers = drawSigners(scene, 'treasury');
  const { authority } = model;
  const use: Use = { signers: new Set(signers), from: authority.now(), until: undefined };
  return {
    options: { signers },
    mayBe: () => authority.mayPay(use),
    /** Judges the answer. */
    end(outcome: Outcome): void {
      if (outcome.kind === 'unknown') return;
      use.until = authority.now();
      if (outcome.kind === 'done') {
        if (!authority.mayPay(use)) world.fail('a payment was accepted without enough signatures, or denied');
        return;
      }
      if (isForSignatures(outcome.code) && authority.mustChange('treasury', use))
        world.fail(`the owners cannot pay: ${outcome.message}`);
      if (outcome.code === 'policy_violation' && !authority.mayBeDenied(use))
        world.fail(`no policy denies a payment that was denied: ${outcome.message}`);
    },
  };
}

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
  const { options, mayBe, end } = authorization(scene, from);
  const payment = newPayment(scene, { caip2: isSolana ? solana : base, recipient, rawAmount, mayBe });
  const body = {
    source: { asset: isSolana ? 'sol' : 'eth', chain: isSolana ? 'solana' : 'base', amount: text },
    destination: { address: recipient },
  };
  const outcome = await callUntilKnown(
    scene,
    'transferFromWallet',
    { path: { wallet_id: ids[from].id }, body },
    options,
  );
  end(outcome);
  if (outcome.kind === 'refused') payment.knowledge = 'refused';
  if (outcome.kind !== 'done') return;
  payment.knowledge = 'acknowledged';
  payment.action = { walletId: ids[from].id, id: outcome.body.id };
};

/** A transaction by the JSON-RPC method. */
export const sendTransaction: Script = (scene) =>
  sendFrom(scene, scene.world.random.pick(['hot', 'treasury'] as const));

/** The same from this wallet. */
export async function sendFrom(scene: Scene, from: PayingWallet): Promise<void> {
  const { ids } = scene;
  const { rawAmount } = drawAmount(scene, 18);
  const { options, mayBe, end } = authorization(scene, from);
  const recipient = newAddress(scene);
  const payment = newPayment(scene, { caip2: base, recipient, rawAmount, mayBe });
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
    options,
  );
  end(outcome);
  if (outcome.kind === 'refused') payment.knowledge = 'refused';
  if (outcome.kind !== 'done') return;
  payment.knowledge = 'acknowledged';
  const { data } = outcome.body as { data: { transaction_id?: string } };
  if (data.transaction_id !== undefined) payment.transactionId = data.transaction_id;
}

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
  const outcome = await world.call('createWalletTransferIntent', {
    path: { wallet_id: ids.treasury.id },
    body: {
      source: { asset: 'eth', chain: 'base', amount: text },
      destination: { address: recipient },
    },
  });
  if (outcome.kind !== 'done') return;
  const { intent_id: id, request_details: request } = outcome.body as unknown as ProposedIntent;
  const intent = newIntent({ id, request, resource: 'treasury', knownAt: model.authority.now() });
  const mayBe = (): boolean => intent.uses.some((use) => model.authority.mayPay(use));
  const payment = newPayment(scene, { caip2: base, recipient, rawAmount, mayBe });
  payment.intent = intent;
  payment.knowledge = 'acknowledged';
  model.intents.push(intent);
};

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
