import assert from 'node:assert/strict';
import { chainNamed } from '../../../engine/assets/known-chains.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type {
  CreateCustodialWalletRequest,
  CustodialWallet,
  CustodialWalletChain,
  CustodialWalletChainType,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { resolveOwner } from '../../access/key-quorums/resolve-owner.ts';
import { checkWalletFields, insertWalletRow, newWalletRow } from '../wallets/create-wallet.ts';
import type { WalletRow } from '../wallets/wallet.entity.ts';

/** The chain that a deprecated `chain_type` refers to. */
const chainOfType: Readonly<Record<string, CustodialWalletChain>> = { ethereum: 'base', solana: 'solana' };

/**
 * Opens a wallet at a custodian, who keeps its key.
 *
 * @param at JSON pointer in the body to the object with the custodian's fields.
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
  // The custodian gets the wallet's id. If the transaction rolls back, an unused empty wallet remains at the custodian.
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

/**
 * Converts a custodial wallet to the wire form of its own operation; other operations show it as a plain wallet. The
 * deprecated `chain_type` is present only if the caller gave it.
 */
export function custodialWalletView(
  row: WalletRow,
  chainType: CustodialWalletChainType | undefined,
): CustodialWallet {
  const { custody_provider: provider, custody_provider_user_id: userId } = row;
  assert(provider !== null && userId !== null, `wallet ${row.id} is not custodial`);
  return {
    id: row.id,
    address: row.address,
    chain: row.custody_chain as CustodialWalletChain,
    ...(chainType === undefined ? {} : { chain_type: chainType }),
    custody: { provider, provider_user_id: userId },
    owner_id: row.owner_id,
    policy_ids: row.policy_id === null ? [] : [row.policy_id],
    additional_signers: JSON.parse(row.additional_signers),
  };
}
