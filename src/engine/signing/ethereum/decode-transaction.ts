import type * as Authorization from 'ox/Authorization';
import * as Eip1559 from 'ox/TxEnvelopeEip1559';
import * as Eip2930 from 'ox/TxEnvelopeEip2930';
import * as Eip7702 from 'ox/TxEnvelopeEip7702';
import * as Legacy from 'ox/TxEnvelopeLegacy';
import { InvalidTransactionError } from '../signing-errors.ts';
import { signatureHex } from './signer.ts';
import type { EthereumTransactionView } from './transaction.ts';

type Hex = `0x${string}`;

/** The union of the decoded envelopes of the four standard types. */
interface Envelope {
  readonly chainId?: number | undefined;
  readonly nonce?: bigint | undefined;
  readonly gas?: bigint | undefined;
  readonly to?: string | null | undefined;
  readonly value?: bigint | undefined;
  readonly data?: string | undefined;
  readonly gasPrice?: bigint | undefined;
  readonly maxFeePerGas?: bigint | undefined;
  readonly maxPriorityFeePerGas?: bigint | undefined;
  readonly authorizationList?: Authorization.List<true> | undefined;
  readonly accessList?: readonly { address: string; storageKeys: readonly string[] }[] | undefined;
  readonly r?: string | undefined;
  readonly s?: string | undefined;
  readonly yParity?: number | undefined;
}

const CODECS = {
  '0x01': { type: 1, decode: Eip2930.deserialize, encode: Eip2930.serialize },
  '0x02': { type: 2, decode: Eip1559.deserialize, encode: Eip1559.serialize },
  '0x04': { type: 4, decode: Eip7702.deserialize, encode: Eip7702.serialize },
} as const;

/**
 * Decodes wire bytes (0x hex, signed or unsigned) of any transaction type. Refuses bytes that encode differently
 * after decoding. Source: EIP-155, 2718, 2930, 1559, 7702; Tempo 0x76.
 *
 * @throws InvalidTransactionError
 */
export async function decodeEthereumTransaction(serialized: string): Promise<EthereumTransactionView> {
  const hex = serialized.toLowerCase() as Hex;
  const prefix = hex.slice(0, 4);
  if (prefix === '0x76') return (await import('./tempo-transaction.ts')).decodeTempoTransaction(hex);
  try {
    const { type, envelope, reencoded } = decodeStandard(prefix, hex);
    if (reencoded === hex) return toView(type, envelope);
  } catch {
    // refused below
  }
  throw new InvalidTransactionError('', 'expected a serialized transaction in canonical encoding');
}

// Uses `as never`, because each codec's types require its literal prefix, which is only known at run time.
function decodeStandard(
  prefix: string,
  hex: Hex,
): { type: 0 | 1 | 2 | 4; envelope: Envelope; reencoded: string } {
  if (Object.hasOwn(CODECS, prefix)) {
    const codec = CODECS[prefix as keyof typeof CODECS];
    const envelope = codec.decode(hex as never);
    return { type: codec.type, envelope, reencoded: codec.encode(envelope as never) };
  }
  const envelope = Legacy.deserialize(hex);
  return { type: 0, envelope, reencoded: Legacy.serialize(envelope) };
}

function toView(type: 0 | 1 | 2 | 4, envelope: Envelope): EthereumTransactionView {
  return {
    type,
    chainId: envelope.chainId,
    nonce: envelope.nonce ?? 0n,
    gasLimit: envelope.gas ?? 0n,
    gasPrice: envelope.gasPrice,
    maxFeePerGas: envelope.maxFeePerGas,
    maxPriorityFeePerGas: envelope.maxPriorityFeePerGas,
    calls: [{ to: envelope.to ?? undefined, value: envelope.value ?? 0n, data: envelope.data ?? '0x' }],
    authorizations: (envelope.authorizationList ?? []).map((entry) => ({
      contract: entry.address,
      chainId: entry.chainId,
      nonce: entry.nonce,
      signature: signatureHex(entry) ?? '0x',
    })),
    accessList: envelope.accessList ?? [],
    signature: signatureHex(envelope),
    tempo: undefined,
  };
}
