import * as Authorization from 'ox/Authorization';
import * as Rlp from 'ox/Rlp';
import { hexToBytes } from '../../crypto/encoding.ts';
import { ecBackend } from '../../crypto/secp256k1.ts';
import { parseEvmAddress, parseQuantity, type Quantity } from '../fields.ts';
import { signatureTuple } from './signer.ts';
import type { SignedAuthorization } from './transaction.ts';

export interface AuthorizationParams {
  readonly contract: string;
  /** 0 is valid on every chain. */
  readonly chain_id: Quantity;
  readonly nonce?: Quantity | undefined;
  /**
   * Whether the wallet itself also sends the transaction that contains the authorization. That transaction then
   * increments the nonce first.
   */
  readonly executor?: 'self' | undefined;
}

/**
 * Executes `eth_sign7702Authorization`: returns the signed authorization, with numbers in the caller's notation. The
 * default nonce is `transactionCount`, or one more with `executor: self`. Source: EIP-7702.
 *
 * @throws InvalidFieldError
 */
export function signAuthorization(
  secret: Uint8Array,
  params: AuthorizationParams,
  transactionCount = 0n,
): SignedAuthorization {
  const address = parseEvmAddress(params.contract, '/contract');
  const chainId = Number(parseQuantity(params.chain_id, '/chain_id', 52));
  const nonce = nonceOf(params, transactionCount);
  // keccak256(0x05 || rlp([chainId, address, nonce]))
  const payload = Authorization.getSignPayload({ address, chainId, nonce });
  const { r, s, yParity } = signatureTuple(ecBackend.sign(hexToBytes(payload.slice(2)), secret));
  return {
    contract: params.contract,
    chain_id: params.chain_id,
    nonce: params.nonce ?? Number(nonce),
    r,
    s,
    y_parity: yParity,
  };
}

/**
 * Returns the bytes whose keccak256 hash an authorization signs.
 *
 * @throws InvalidFieldError
 */
export function encodeAuthorization(params: AuthorizationParams): Uint8Array {
  const address = parseEvmAddress(params.contract, '/contract') as `0x${string}`;
  const chainId = parseQuantity(params.chain_id, '/chain_id', 52);
  const nonce = parseQuantity(params.nonce ?? 0, '/nonce', 64);
  // 0x05 || rlp([chainId, address, nonce])
  return hexToBytes(`05${Rlp.fromHex([numberHex(chainId), address, numberHex(nonce)]).slice(2)}`);
}

/** Encodes an integer as hex without leading zero bytes. Zero is `0x`. */
function numberHex(value: bigint): `0x${string}` {
  const digits = value === 0n ? '' : value.toString(16);
  return `0x${digits.padStart(digits.length + (digits.length % 2), '0')}`;
}

// CHOICE: `executor: self` raises only the default nonce. A nonce in the params is signed unchanged.
function nonceOf(params: AuthorizationParams, transactionCount: bigint): bigint {
  if (params.nonce !== undefined) return parseQuantity(params.nonce, '/nonce', 64);
  return params.executor === 'self' ? transactionCount + 1n : transactionCount;
}
