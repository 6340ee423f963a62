import { listDepositAccounts } from '../../domain/money/crypto-deposits/list-deposit-accounts.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listCryptoDepositAccounts'> = async ({ path, query }, context) => {
  const { accounts, nextCursor } = await listDepositAccounts(context, path.wallet_id, query);
  return { data: accounts, next_cursor: nextCursor };
};
