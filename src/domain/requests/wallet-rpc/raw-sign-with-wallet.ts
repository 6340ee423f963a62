import { decodeRawSignAction } from '../../../actions/decode-raw-bytes.ts';
import { ApiError } from '../../../errors.ts';
import type { RawSignRequest, RawSignResponse } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { ChainType } from '../../../signing/chains.ts';
import type { RawSignParams } from '../../../signing/raw-sign.ts';
import { asSigningRefusal } from '../../base/actions/wallet-signing-error.ts';
import { authorizeUse } from '../../wallets/wallet-uses/authorize-use.ts';
import { signWithWalletKey } from '../../wallets/wallet-uses/use-wallet-key.ts';
import { findWalletWithKey } from '../../wallets/wallets/find-wallet.ts';

/**
 * Signs a hash, or bytes that are hashed first, in the signature form of the wallet's chain.
 *
 * @throws ApiError not_found; invalid_data for a payload the chain does not support; not_supported for a custodial
 * wallet; the codes of `requireOwner`; policy_violation.
 */
export async function rawSignWithWallet(
  context: OperationContext,
  walletId: string,
  request: RawSignRequest,
): Promise<RawSignResponse> {
  const wallet = await findWalletWithKey(context, walletId);
  if (wallet.custody_provider !== null)
    throw new ApiError('not_supported', 'a custodial wallet does not support raw_sign');
  const chainType = wallet.chain_type as ChainType;
  const input = request.params as RawSignParams;
  try {
    const use = await authorizeUse(context, wallet, {
      operation: 'rawSignWallet',
      request,
      decode: () => ({ action: decodeRawSignAction(chainType, input) }),
      mayBeSigner: true,
    });
    const signature = await signWithWalletKey(context, wallet, { method: 'raw_sign', params: input });
    await use.record();
    return { method: 'raw_sign', data: { signature, encoding: 'hex' } };
  } catch (error) {
    throw asSigningRefusal(error);
  }
}
