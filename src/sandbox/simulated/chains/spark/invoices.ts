import { sha256 } from '@noble/hashes/sha2.js';
import {
  bytesToHex,
  concatBytes,
  equalBytes,
  hexToBytes,
  utf8ToBytes,
} from '../../../../engine/crypto/encoding.ts';
import { ecBackend } from '../../../../engine/crypto/secp256k1.ts';
import {
  encodeInvoice,
  type ReadInvoice,
  readInvoice,
} from '../../../../engine/signing/lightning-invoice.ts';
import { isIdentityKey, type SparkNetworkName } from '../../../../engine/signing/spark.ts';
import type { SparkInvoice, SparkInvoiceRequest } from '../../../../ports/spark.ts';
import { OPERATOR_SECRET } from './quotes.ts';

/** The public key of the operators' node. */
const NODE_KEY = ecBackend.publicKey(OPERATOR_SECRET, false);
/**
 * A route hint with this channel id contains the identity key of a Spark wallet instead of a channel, so that the
 * invoice can be paid without Lightning. Source: Spark SDK, RECEIVER_IDENTITY_PUBLIC_KEY_SHORT_CHANNEL_ID.
 */
const SPARK_CHANNEL = hexToBytes('f42400f424000001');

// CHOICE: a Lightning payment costs a fee of 0.1 percent, rounded up to whole sats.
const FEE_DIVISOR = 1_000n;

/** Returns the fee of a Lightning payment. */
export function quotePayment(sats: bigint): bigint {
  return (sats + FEE_DIVISOR - 1n) / FEE_DIVISOR;
}

/**
 * Creates an invoice.
 *
 * CHOICE: the metadata, which only the node reads, contains the receiver, so that invoices need not be stored.
 */
export function makeInvoice(
  network: SparkNetworkName,
  request: SparkInvoiceRequest,
): { text: string; paymentHash: string } {
  const { id, receiverKey, sats, description, createdAtSeconds, expirySeconds, hasSparkAddress } = request;
  const derive = (purpose: string) =>
    sha256(concatBytes(OPERATOR_SECRET, utf8ToBytes(`${purpose} ${network} ${id}`)));
  const paymentHash = sha256(derive('preimage'));
  const nodeKey = hexToBytes(receiverKey);
  const text = encodeInvoice(
    {
      ...{ network, sats, createdAtSeconds, expirySeconds, paymentHash },
      paymentSecret: derive('payment secret'),
      description: 'text' in description ? description.text : hexToBytes(description.hash),
      hint: hasSparkAddress ? { nodeKey, channelId: SPARK_CHANNEL } : undefined,
      metadata: nodeKey,
    },
    OPERATOR_SECRET,
  );
  return { text, paymentHash: bytesToHex(paymentHash) };
}

/** Decodes an invoice of this network's operators. Returns undefined for any other string. */
export function readOwnInvoice(
  network: SparkNetworkName,
  text: string,
): Omit<SparkInvoice, 'isPaid'> | undefined {
  const invoice = readInvoice(text);
  if (invoice?.metadata === undefined || invoice.network !== network) return undefined;
  const receiverKey = bytesToHex(invoice.metadata);
  if (!equalBytes(invoice.nodeKey, NODE_KEY) || !isIdentityKey(receiverKey)) return undefined;
  return {
    receiverKey,
    sats: invoice.sats,
    paymentHash: bytesToHex(invoice.paymentHash),
    expiresAtMs: (invoice.createdAtSeconds + invoice.expirySeconds) * 1000,
    hasSparkAddress: isForSpark(invoice),
  };
}

function isForSpark({ hint }: ReadInvoice): boolean {
  return hint !== undefined && equalBytes(hint.channelId, SPARK_CHANNEL);
}
