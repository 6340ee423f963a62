import { chainNamed } from '../../../assets/known-chains.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type { CreateCustodialWalletRequest, CustodialWalletChain } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { resolveOwner } from '../../access/key-quorums/resolve-owner.ts';
import { checkWalletFields } from '../wallets/check-wallet-fields.ts';
import { insertWalletRow, newWalletRow } from '../wallets/insert-wallet.ts';
import type { WalletRow } from '../wallets/wallet-row.ts';

/** The chain that a deprecated `chain_type` refers to. */
const chainOfType: Readonly<Record<string, CustodialWalletChain>> = { ethereum: 'base', solana: 'solana' };

/**
 * Opens a wallet at a custodian, who keeps its key.
 *
 * @param at points to the custodian's fields in the body.
 * @throws ApiError not_supported without this custodian; invalid_data when the custodian does not know the customer,
 * when an owner, signer or policy does not exist, and when `chain_type` does not match `chain`.
 */
export async function createCustodialWallet(
  context: OperationContext,
  input: CreateCustodialWalletRequest,
  at = '',
): Promise<WalletRow> {
  const custodian = context.custodians.find(input.provider);
  if (custodian === undefined) {
    throw new ApiError(
      'not_supported',
      `${at}/provider: the custodian \`${input.provider}\` is not configured here`,
    );
  }
  const { provider_user_id: userId } = input;
  const { chain, chainType } = chainOf(input);
  await checkWalletFields(context, input, chainType);
  const ownerId = (await resolveOwner(context, input)) ?? null;
  const wallet = {
    chainType,
    ownerId,
    policyIds: input.policy_ids,
    additionalSigners: input.additional_signers,
  };
  const row = newWalletRow(context, wallet, { address: '', publicKey: null });
  // Opened under the wallet's id: if the transaction rolls back, an unused empty wallet remains at the custodian.
  const opened = await custodian.openWallet({ walletId: row.id, userId, chain });
  if (opened === undefined)
    throw invalidField(`${at}/provider_user_id`, `the custodian has no customer \`${userId}\``);
  return insertWalletRow(
    context,
    {
      ...row,
      address: opened.address,
      custody_provider: input.provider,
      custody_provider_user_id: userId,
      custody_chain: chain,
    },
    input.additional_signers,
  );
}

function chainOf({ chain: asked, chain_type: type }: CreateCustodialWalletRequest) {
  const chain = asked ?? (type === undefined ? 'base' : (chainOfType[type] as CustodialWalletChain));
  const chainType = chain === 'solana' ? 'solana' : 'ethereum';
  if (chainNamed(chain)?.chainType !== chainType) throw new Error(`the chain ${chain} is not known`);
  if (type !== undefined && type !== chainType) {
    throw invalidField('/chain_type', `\`${chain}\` is a chain of ${chainType} wallets`);
  }
  return { chain, chainType } as const;
}
