import type { FiatDepositAccount } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { StoredDepositAccount } from './fiat-deposit-account.entity.ts';
import { readInstructions } from './instructions.ts';

/** Deposit accounts in wire form, with their payment instructions. */
export async function depositAccountViews(
  context: Pick<OperationContext, 'em' | 'vault'>,
  accounts: readonly StoredDepositAccount[],
): Promise<FiatDepositAccount[]> {
  const activated = accounts.filter(({ status }) => status === 'activated');
  const instructions = await readInstructions(context, activated);
  return accounts.map((account) => ({
    id: account.id,
    wallet_id: account.walletId,
    provider: account.provider as FiatDepositAccount['provider'],
    environment: account.environment as FiatDepositAccount['environment'],
    status: account.status as FiatDepositAccount['status'],
    source: { currency: account.currency, payment_rails: JSON.parse(account.paymentRails) as string[] },
    destination: { asset: account.asset, chain: account.chain },
    developer_fee_percent: account.developerFeePercent,
    deposit_instructions: instructions.get(account.id) ?? null,
    created_at: new Date(account.createdAtMs).toISOString(),
  }));
}
