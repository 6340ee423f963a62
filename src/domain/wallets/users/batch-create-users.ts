import { ApiError, invalidField } from '../../../errors.ts';
import type {
  UserBatchCreateInputUser,
  UserBatchCreateResult,
  WalletCreationInput,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { inSavepoint } from '../../../storage/savepoint.ts';
import { type PreparedUser, prepareUser, storeUser } from './create-user.ts';
import { queueForAccounts } from './store-accounts.ts';

const flags = [
  'create_embedded_wallet',
  'create_ethereum_wallet',
  'create_n_embedded_wallets',
  'create_n_ethereum_wallets',
  'create_ethereum_smart_wallet',
  'create_solana_wallet',
] as const satisfies readonly (keyof UserBatchCreateInputUser)[];

/**
 * Creates up to 20 users independently: a refusal for one does not affect the others.
 *
 * Result: one entry for each input, in order.
 *
 * @throws ApiError invalid_data when flags of an entry contradict each other; then no user is created.
 */
export async function batchCreateUsers(
  context: OperationContext,
  inputs: readonly UserBatchCreateInputUser[],
): Promise<UserBatchCreateResult[]> {
  const wallets = inputs.map((input, index) => walletsOf(input, `/users/${index}`));
  const prepared: (PreparedUser | ApiError)[] = [];
  const results: UserBatchCreateResult[] = [];
  // All keys are drawn before the first statement, user by user, so that other requests run in between.
  for (const [index, { linked_accounts, custom_metadata }] of inputs.entries()) {
    const input = { linked_accounts, custom_metadata, wallets: wallets[index] };
    prepared.push(await outcomeOf(() => prepareUser(context, input)));
  }
  await queueForAccounts(
    context,
    prepared.flatMap((outcome) => (outcome instanceof ApiError ? [] : outcome.accounts)),
  );
  for (const [index, outcome] of prepared.entries()) {
    results.push({ index, ...(await storeOne(context, outcome)) });
  }
  return results;
}

/** The value of `work`, or the ApiError it throws. */
async function outcomeOf<T>(work: () => Promise<T>): Promise<T | ApiError> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ApiError && error.status < 500) return error;
    throw error;
  }
}

async function storeOne(context: OperationContext, prepared: PreparedUser | ApiError) {
  const outcome =
    prepared instanceof ApiError
      ? prepared
      : await outcomeOf(() =>
          // A refusal rolls back only this user.
          inSavepoint(context.em, (em) => storeUser({ ...context, em }, prepared)),
        );
  if (!(outcome instanceof ApiError)) return { success: true as const, id: outcome.row.id };
  const { error, code } = outcome.toBody();
  return { success: false as const, error, ...(code === undefined ? {} : { code }) };
}

/**
 * The wallets that an entry asks for, by `wallets` or by the older flags.
 *
 * CHOICE: flags that contradict each other are a mistake of the request, not the outcome of one user.
 */
function walletsOf(input: UserBatchCreateInputUser, pointer: string): WalletCreationInput[] {
  if (input.wallets !== undefined) {
    const flag = flags.find((name) => input[name] !== undefined);
    if (flag !== undefined) throw invalidField(`${pointer}/${flag}`, 'not allowed together with `wallets`');
    return input.wallets;
  }
  const isOldest =
    input.create_embedded_wallet !== undefined || input.create_n_embedded_wallets !== undefined;
  const isNewer = input.create_ethereum_wallet !== undefined || input.create_n_ethereum_wallets !== undefined;
  if (isOldest && isNewer) {
    const flag =
      input.create_embedded_wallet === undefined ? 'create_n_embedded_wallets' : 'create_embedded_wallet';
    throw invalidField(`${pointer}/${flag}`, 'not allowed together with the flag that replaces it');
  }
  const wantsOne = input.create_embedded_wallet ?? input.create_ethereum_wallet ?? false;
  const count = input.create_n_embedded_wallets ?? input.create_n_ethereum_wallets ?? (wantsOne ? 1 : 0);
  const wantsSmart = input.create_ethereum_smart_wallet ?? false;
  if (wantsSmart && count === 0) {
    throw invalidField(`${pointer}/create_ethereum_smart_wallet`, 'needs `create_ethereum_wallet`');
  }
  const ethereum = Array.from({ length: count }, (_, index) => ({
    chain_type: 'ethereum' as const,
    ...(wantsSmart && index === 0 ? { create_smart_wallet: true } : {}),
  }));
  return [...ethereum, ...(input.create_solana_wallet ? [{ chain_type: 'solana' as const }] : [])];
}
