import { ApiError } from '../../errors.ts';
import { readFault } from '../faults/read-fault.ts';
import { selectionOf } from '../faults/select-by.ts';
import type { Scenario } from './scenarios.ts';
import type { Stage } from './stage.ts';

const CAIP2 = 'eip155:8453';
/** The jobs look at a transaction this often. */
const CHECK_MS = 2_000;

export const transactionReverted: Scenario = {
  name: 'tx-reverted',
  summary: 'A transaction that was simulated successfully reverts in its block. Advances the clock.',
  async play(stage) {
    const { context } = stage;
    const wallet = await stage.create('wallet', 'A wallet is created', {
      operation: 'createWallet',
      body: { chain_type: 'ethereum' },
    });
    const { body } = await stage.call('Its address', { operation: 'getWallet', path: { wallet_id: wallet } });
    await context.chains.fund(CAIP2, {
      address: String(body.address),
      tokenAddress: null,
      rawAmount: 10n ** 18n,
    });
    stage.note('The faucet pays it 1 ETH on Base');
    await revertNext(stage, wallet);
    const sent = await stage.call('It sends 1 wei', {
      operation: 'walletRpc',
      path: { wallet_id: wallet },
      body: {
        method: 'eth_sendTransaction',
        caip2: CAIP2,
        params: { transaction: { to: '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0', value: '0x1' } },
      },
    });
    const { transaction_id: transaction } = (sent.body.data ?? {}) as { transaction_id?: string };
    if (transaction === undefined)
      throw new ApiError(
        'invalid_state',
        `the transaction was refused; \`custos why ${sent.requestId}\` explains it`,
      );
    await context.chains.mine(CAIP2, 1);
    context.clock.advance(CHECK_MS);
    await context.finishJobs();
    stage.note('A block includes it');
    await stage.call('It is reverted', {
      operation: 'getTransaction',
      path: { transaction_id: transaction },
    });
    return [`custos call getTransaction ${transaction}`, 'custos events list --events transaction.*'];
  },
};

async function revertNext({ context, note }: Stage, wallet: string): Promise<void> {
  const body = { effect: 'transaction_revert' as const, wallet_id: wallet, count: 1 };
  const rule = context.faults.add(
    readFault(body, context.documentedErrors),
    await selectionOf(body, context),
  );
  if (rule === undefined)
    throw new ApiError('invalid_state', 'there are too many fault rules; remove some first');
  note(`The fault rule ${rule.id} makes its next transaction revert`);
}
