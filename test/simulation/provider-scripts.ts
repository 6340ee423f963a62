import { callUntilKnown, type Script, unique } from './scripts.ts';

const millionth = 1_000_000n;

/** Pays out to a bank account. What has left the wallet is exactly what was paid out. */
export const payOut: Script = async (scene) => {
  const { world, model, ids } = scene;
  const whole = BigInt(world.random.between(2, 30));
  const payout = { rawAmount: whole * millionth, knowledge: 'unknown' as const };
  const entry: (typeof model.payouts)[number] = { ...payout };
  model.payouts.push(entry);
  const outcome = await callUntilKnown(
    scene,
    'createFiatPayout',
    {
      path: { wallet_id: ids.payer.id },
      body: {
        source: { asset: 'usdc', chain: 'base', amount: String(whole) },
        destination: { fiat_account_id: ids.bankAccount },
        developer_fee_percent: '7.5',
        nonce: `payout-of-the-simulation-${unique()}`,
      },
    },
    {},
  );
  if (outcome.kind === 'refused') entry.knowledge = 'refused';
  if (outcome.kind !== 'done') return;
  entry.knowledge = 'acknowledged';
  entry.actionId = outcome.body.id;
};

/** A customer of a bank pays euros into the deposit account; the bank may report it twice. */
export const payIn: Script = async ({ world, model, ids }) => {
  const { random, outside } = world;
  const outcome = random.pick(['completed', 'completed', 'refunded'] as const);
  const order = {
    ...{ accountId: ids.depositAccount, reference: `payment ${unique()}`, outcome },
    amount: (random.between(100, 50_000) / 100).toFixed(2),
  };
  const received = await outside.fiatControls.receive('sandbox', order);
  if (received === undefined || received === 'amount') return world.fail(`the bank says ${received}`);
  if (random.chance(0.3)) await outside.fiatControls.receive('sandbox', order);
  world.note(`paid in ${received.id} ${order.amount} ${outcome}`);
  model.bankDeposits.push({ id: received.id, outcome });
};

/** Moves tokens into the vault, or out of it. */
export const earn: Script = async (scene) => {
  const { world, ids } = scene;
  const operation = world.random.chance(0.6) ? 'depositEthereumEarn' : 'withdrawEthereumEarn';
  const body = { vault_id: ids.vault, amount: String(world.random.between(1, 5)) };
  await callUntilKnown(scene, operation, { path: { wallet_id: ids.saver.id }, body }, {});
};
