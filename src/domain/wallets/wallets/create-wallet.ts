import type { CreateWalletRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { checkWalletFields, resolveWalletOwner } from './check-wallet-fields.ts';
import { generateWalletKey, type WalletKeyMaterial } from './generate-wallet-key.ts';
import { insertWallet } from './insert-wallet.ts';
import type { WalletRow } from './wallet-row.ts';

/**
 * Makes a wallet with a new key.
 *
 * @param key drawn beforehand, for whoever makes several wallets at once; wiped here.
 * @throws ApiError invalid_data when an owner, signer, policy or entity is not there, resource_conflict when
 * the external id is taken, wallet_entity_limit_exceeded.
 */
export async function createWallet(
  context: OperationContext,
  input: CreateWalletRequest,
  key: Promise<WalletKeyMaterial> = generateWalletKey(input.chain_type, context.entropy),
): Promise<WalletRow> {
  // NOTE: derived before the database is touched: on SQLite the first statement begins the transaction that
  // everybody else waits for.
  const material = await key;
  try {
    await checkWalletFields(context, input, input.chain_type);
    const ownerId = await resolveWalletOwner(context, input);
    const wallet = {
      chainType: input.chain_type,
      ownerId,
      displayName: input.display_name,
      externalId: input.external_id,
      policyIds: input.policy_ids,
      additionalSigners: input.additional_signers,
      entity: input.entity,
    };
    return await insertWallet(context, wallet, material);
  } finally {
    material.secretBytes.fill(0);
  }
}
