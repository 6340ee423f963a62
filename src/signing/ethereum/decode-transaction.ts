import type * as Authorization from 'ox/Authorization';
import * as Eip1559 from 'ox/TxEnvelopeEip1559';
import * as Eip2930 from 'ox/TxEnvelopeEip2930';
import * as Eip7702 from 'ox/TxEnvelopeEip7702';
import * as Legacy from 'ox/TxEnvelopeLegacy';
import { InvalidTransactionError } from '../signing-errors.ts';
import { signatureHex } from './signature-hex.ts';
import type { EthereumTransactionView } from './transaction-view.ts';

type Hex = `0x${string}`;

/** What the envelopes of the four standard types have in common once decoded. */
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
 * Wire bytes (0x hex, signed or not) of any type to the view that policies judge. Bytes that do not encode back
 * to themselves are refused. Throws InvalidTransactionError. Source: EIP-155, 2718, 2930, 1559, 7702; Tempo 0x76.
 */
export async function decodeEthereumTransaction(serialized: string): Promise<EthereumTransactionView> {
  const hex = serialized.toLowerCase() as Hex;
  const prefix = hex.slice(0, 4);
  if (prefix === '0x76') return (await import('./tempo-transaction.ts')).decodeTempoTransaction(hex);
  try {
    const { type, envelope, again } = decodeStandard(prefix, hex);
    if (again === hex) return toView(type, envelope);
  } catch {
    // refused below
  }
  throw new InvalidTransactionError('', 'expected a serialized transaction in canonical form');
}

// The codecs' types name each prefix; which one it is was read from the bytes.
function decodeStandard(
  prefix: string,
  hex: Hex,
): { type: 0 | 1 | 2 | 4; envelope: Envelope; again: string } {
  if (Object.hasOwn(CODECS, prefix)) {
    const codec = CODECS[prefix as keyof typeof CODECS];
    const envelope = codec.decode(hex as never);
    return { type: codec.type, envelope, again: codec.encode(envelope as never) };
  }
  const envelope = Legacy.deserialize(hex);
  return { type: 0, envelope, again: Legacy.serialize(envelope) };
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
