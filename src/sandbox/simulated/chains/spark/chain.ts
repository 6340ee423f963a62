import { bytesToHex } from '../../../../engine/crypto/encoding.ts';
import { ecBackend } from '../../../../engine/crypto/secp256k1.ts';
import {
  decodeSparkOperation,
  readSparkAddress,
  readTokenIdentifier,
  type SparkOperation,
  sparkAddress,
  sparkDepositAddress,
} from '../../../../engine/signing/spark.ts';
import type { BroadcastOutcome, PlainChain } from '../../../../ports/chains.ts';
import { type Machine, makeBlocks } from '../blocks.ts';
import { termsOf } from '../chain-terms.ts';
import { decodeOrRefuse, refuse } from '../decode-or-refuse.ts';
import { fundPlain } from '../fund.ts';
import {
  FEE_ACCOUNT,
  type Movement,
  makeContractAccounts,
  makeLedger,
  NATIVE,
  RevertError,
} from '../ledger.ts';
import { makePool } from '../pool.ts';
import { type Simulated, transfersAfter, transfersOf, type World } from '../world.ts';
import { makeInvoice, quotePayment, readOwnInvoice } from './invoices.ts';
import { OPERATOR_SECRET, quoteDeposit, quoteWithdrawal } from './quotes.ts';

// The maximum supply, 21 million bitcoin.
const MAX_SATS = 2_100_000_000_000_000n;
const LAYER_1_ADDRESS = /^(bc|bcrt)1[02-9ac-hj-np-z]{38,87}$/;

/** Operators execute operations immediately, so no transaction is ever pending. */
const noPendingTransactions: Machine<SparkOperation> = {
  readiness: () => 'drop',
  execute: async () => () => ({ fee: 0n, failure: undefined, movements: [] }),
  replacementOf: () => null,
};

type Parts = ReturnType<typeof makeParts>;

function makeParts(world: World, caip2: string) {
  const { store, clock } = world;
  const pool = makePool<SparkOperation>(store, caip2);
  const options = { store, caip2, terms: termsOf(caip2), clock, confirmAfterMs: undefined, pool };
  return {
    world,
    caip2,
    network: caip2 === 'spark:mainnet' ? ('MAINNET' as const) : ('REGTEST' as const),
    ledger: makeLedger(store, caip2),
    tokens: makeContractAccounts(store, caip2),
    pool,
    blocks: makeBlocks({ ...options, machine: noPendingTransactions }),
  };
}

/**
 * Simulates one Spark network. Its operators keep the balances, execute an operation immediately, and finalize it
 * with the next block.
 *
 * CHOICE: layer 1 uses the same ledger. The faucet sends bitcoin to deposit addresses, and withdrawals credit layer 1
 * addresses.
 */
export function simulateSpark(world: World, caip2: string): Simulated<PlainChain> {
  const parts = makeParts(world, caip2);
  const { ledger, tokens, pool, blocks } = parts;
  const { atHead } = blocks;
  const text = (address: string) => address;
  return {
    chain: {
      kind: 'plain',
      caip2,
      spark: {
        holdings: (address) => atHead(() => holdingsOf(parts, address)),
        quoteDeposit: (deposit) => atHead(() => quoteDeposit(world, caip2, deposit)),
        quoteWithdrawal: async (withdrawal) => quoteWithdrawal(world.clock.now(), caip2, withdrawal),
        makeInvoice: async (request) => makeInvoice(parts.network, request),
        readInvoice: (invoice) =>
          atHead(() => {
            const read = readOwnInvoice(parts.network, invoice);
            return read && { ...read, isPaid: pool.ofNonce(...laneOfInvoice(read), 0) !== undefined };
          }),
        quotePayment: async (sats) => quotePayment(sats),
      },
      balances: (address, assets) =>
        atHead(() => assets.map((token) => ledger.balance(address, token ?? NATIVE))),
      async broadcast(bytes) {
        const decoded = await decodeOrRefuse(() => decodeSparkOperation(bytes));
        return 'isAccepted' in decoded ? decoded : atHead(() => execute(parts, decoded));
      },
      statusOf: (hash) => atHead(() => pool.status(hash, blocks) ?? { kind: 'unknown', isExpired: false }),
      transfersOf: (query) => atHead(() => transfersOf(world, caip2, { query, text })),
      transfersAfter: (reading) => atHead(() => transfersAfter(world, caip2, { reading, text })),
    },
    ledger,
    decimalsOf: (tokenAddress) => (tokenAddress === null ? 0 : tokens.token(tokenAddress)?.decimals),
    fund: (deposit) =>
      fundPlain({
        ...{ world, caip2, ledger, block: blocks.head(), deposit },
        ...{ faucet: 'faucet', maxSupply: MAX_SATS, defaultDecimals: 6 },
        isAddress: (address) => isAddressOrToken(parts, address),
      }),
    catchUp: () => blocks.catchUp(),
    head: () => blocks.head(),
    mine: (count) => blocks.mine(count),
  };
}

function isAddressOrToken({ network }: Parts, text: string): boolean {
  return (
    readSparkAddress(text, network) !== undefined ||
    readTokenIdentifier(text, network) !== undefined ||
    LAYER_1_ADDRESS.test(text)
  );
}

function holdingsOf({ world, caip2, ledger, tokens }: Parts, address: string) {
  const rows = world.store.all<{ asset: string; amount: string }>(
    `select asset, amount from balances where caip2 = ? and owner = ? and asset <> '' and amount <> '0' order by asset`,
    ...[caip2, address],
  );
  // CHOICE: the operators are the issuer of every token.
  const issuerKey = bytesToHex(ecBackend.publicKey(OPERATOR_SECRET, true));
  return {
    sats: ledger.balance(address, NATIVE),
    tokens: rows.map(({ asset, amount }) => {
      const { decimals = 0, symbol = '' } = tokens.token(asset) ?? {};
      return { identifier: asset, rawAmount: BigInt(amount), decimals, symbol, issuerKey };
    }),
  };
}

/** Executes an operation or rejects it. */
function execute(
  parts: Parts,
  { operation, hash }: { operation: SparkOperation; hash: string },
): BroadcastOutcome {
  const { world, network, pool, blocks } = parts;
  if (pool.isKnown(hash)) return { isAccepted: true, hash };
  const { owner, from, deposit } = operation;
  if (operation.network !== network) {
    return refuse('invalid', `expected the network ${network}, got \`${operation.network}\``);
  }
  const own = deposit === null ? sparkAddress(owner, network) : sparkDepositAddress(owner, network);
  if (from !== own) return refuse('invalid', "expected the signer's own address as the source");
  const invoice = operation.invoice === undefined ? undefined : readOwnInvoice(network, operation.invoice);
  const fault = operation.invoice === undefined ? undefined : faultOfPayment(parts, operation, invoice);
  if (fault !== undefined) return refuse('invalid', fault);
  const [payer, lane] =
    invoice === undefined
      ? [from, deposit === null ? `operation ${operation.id}` : `deposit ${deposit}`]
      : laneOfInvoice(invoice);
  if (pool.ofNonce(payer, lane, 0) !== undefined) {
    return refuse(
      'stale',
      `the ${invoice === undefined ? 'deposit was already claimed' : 'invoice was already paid'}`,
    );
  }
  const block = blocks.head();
  const times = { receivedMs: world.clock.now(), dueMs: world.clock.now() };
  try {
    world.store.atomically(() => {
      const movements = move(parts, operation);
      pool.add({ hash, sender: payer, lane, nonce: 0, plan: operation, ...times });
      const [entry] = pool.waiting(payer, lane);
      pool.include(entry!, block, { fee: BigInt(operation.fee), failure: undefined, movements });
    });
  } catch (error) {
    if (!(error instanceof RevertError)) throw error;
    return refuse('insufficient_funds', error.message);
  }
  return { isAccepted: true, hash };
}

/** Returns an invoice's own nonce lane. It ensures that only one payment of the invoice succeeds, whoever pays. */
function laneOfInvoice({ paymentHash }: { readonly paymentHash: string }): [sender: string, lane: string] {
  return ['lightning', `invoice ${paymentHash}`];
}

/** Returns the reason why an operation does not pay its invoice, or undefined if it does. */
function faultOfPayment(
  { world, network }: Parts,
  { to, token, amount, fee }: SparkOperation,
  invoice: ReturnType<typeof readOwnInvoice>,
): string | undefined {
  if (invoice === undefined) return 'expected an invoice of these operators';
  if (invoice.expiresAtMs <= world.clock.now()) return 'the invoice has expired';
  if (to !== sparkAddress(invoice.receiverKey, network)) return "expected the invoice's receiver";
  const sats = BigInt(amount);
  const isAmount = token === null && (invoice.sats === undefined || invoice.sats === sats);
  if (!isAmount) return "expected the invoice's amount";
  const isFree = invoice.hasSparkAddress && fee === '0';
  return isFree || BigInt(fee) === quotePayment(sats) ? undefined : 'expected the fee of the payment';
}

function move({ ledger }: Parts, { from, to, token, amount, fee }: SparkOperation): Movement[] {
  const asset = token ?? NATIVE;
  const moved = BigInt(amount);
  ledger.debit({ owner: from, asset, amount: moved, shortfall: 'insufficient funds' });
  ledger.debit({ owner: from, asset: NATIVE, amount: BigInt(fee), shortfall: 'insufficient funds' });
  ledger.credit(to, asset, moved);
  ledger.credit(FEE_ACCOUNT, NATIVE, BigInt(fee));
  return [{ sender: from, recipient: to, asset, amount: moved }];
}
