import type { FiatDepositInstructions } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { depositInstructionsBinding } from '../../base/sealed-keys/seal-bindings.ts';
import type { StoredDepositAccount } from './fiat-deposit-account.entity.ts';
import { FiatDepositInstructionsEntity } from './fiat-deposit-instructions.entity.ts';

type InstructionsContext = Pick<OperationContext, 'em' | 'vault'>;
type Account = Pick<StoredDepositAccount, 'id' | 'appId'>;

const bindingOf = ({ id, appId }: Account) => depositInstructionsBinding({ id, app_id: appId });

/** Stores the payment instructions of an account, sealed. The caller flushes. */
export async function sealInstructions(
  { em, vault }: InstructionsContext,
  account: Account,
  instructions: FiatDepositInstructions,
): Promise<void> {
  const secret = Uint8Array.from(Buffer.from(JSON.stringify(instructions), 'utf8'));
  const sealed = await vault.seal(secret, bindingOf(account)).finally(() => secret.fill(0));
  em.create(FiatDepositInstructionsEntity, {
    id: account.id,
    appId: account.appId,
    sealedSecret: Buffer.from(sealed.sealedSecret),
    wrappedDataKey: Buffer.from(sealed.wrappedDataKey),
    masterKeyId: sealed.masterKeyId,
  });
}

/** The payment instructions of accounts by id; accounts without stored ones are left out. */
export async function readInstructions(
  { em, vault }: InstructionsContext,
  accounts: readonly Account[],
): Promise<ReadonlyMap<string, FiatDepositInstructions>> {
  const ids = accounts.map(({ id }) => id);
  const stored = ids.length === 0 ? [] : await em.find(FiatDepositInstructionsEntity, { id: { $in: ids } });
  const found = new Map<string, FiatDepositInstructions>();
  for (const row of stored) {
    const text = Buffer.from(await vault.open(row, bindingOf(row))).toString('utf8');
    found.set(row.id, JSON.parse(text) as FiatDepositInstructions);
  }
  return found;
}
