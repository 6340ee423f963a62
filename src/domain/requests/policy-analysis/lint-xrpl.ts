import type { ConditionInput } from '../../../engine/policy/condition-source.ts';
import { encodeXrplTransaction, type XrplTransaction } from '../../../engine/signing/xrpl/transaction.ts';
import {
  boundaryNumbers,
  distinct,
  type Effect,
  hashRequest,
  type LintSubject,
  MAX_RECEIVERS,
  namedValues,
  rpc,
  type TriedRequest,
} from './lint-requests.ts';

const METHOD = 'xrpl_signTransaction';
/** Example accounts: the account of the ledger's genesis, an account without a key, and an issuer. */
const SENDER = 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh';
const STRANGER = 'rrrrrrrrrrrrrrrrrrrrrhoLvTp';
const ISSUER = 'rvYAfWj5gh67oV6fW32ZzP3Aw4Eubs59B';
/** The upper limit of tried amounts: the number of drops that were ever created. */
const MAX_DROPS = 10n ** 17n;
/** A time in 2100, in seconds since 2000. */
const LATER = 3_155_760_000;

/** Yields payments with the receivers and amounts that conditions name, and other transactions with the same effect. */
export function* xrplEffects({ conditions, sender = SENDER }: LintSubject): Generator<Effect> {
  const named = (field: string) => namedValues(conditions, (each) => each.field === field);
  for (const to of distinct([STRANGER, ...named('Payment.Destination')], MAX_RECEIVERS)) {
    for (const drops of boundaryNumbers(named('Payment.Amount.drops'), MAX_DROPS)) {
      if (drops > 0n) yield effectOf(sender, to, String(drops));
    }
  }
}

interface Paid {
  readonly Destination: string;
  readonly Amount: string;
}

const HASH = '11'.repeat(32);
const XRP = { currency: 'XRP' };
const ISSUED = { currency: 'USD', issuer: ISSUER };
const BRIDGE = {
  LockingChainDoor: STRANGER,
  LockingChainIssue: XRP,
  IssuingChainDoor: ISSUER,
  IssuingChainIssue: XRP,
};

/**
 * Transactions of other types that pay the same or let another account do so, by type. The first three let another
 * account sign. Source: XRPL docs, transaction types.
 */
const siblings: Readonly<Record<string, (paid: Paid) => XrplTransaction>> = {
  SetRegularKey: ({ Destination }) => ({ RegularKey: Destination }),
  SignerListSet: ({ Destination }) => ({
    SignerQuorum: 1,
    SignerEntries: [{ SignerEntry: { Account: Destination, SignerWeight: 1 } }],
  }),
  DelegateSet: ({ Destination }) => ({
    Authorize: Destination,
    Permissions: [{ Permission: { PermissionValue: 'Payment' } }],
  }),
  AccountDelete: ({ Destination }) => ({ Destination }),
  AMMBid: ({ Amount }) => ({ Asset: XRP, Asset2: ISSUED, BidMin: Amount }),
  AMMCreate: ({ Amount }) => ({ Amount, Amount2: { ...ISSUED, value: '1' }, TradingFee: 0 }),
  AMMDeposit: ({ Amount }) => ({ Asset: XRP, Asset2: ISSUED, Amount, Flags: 0x00080000 }),
  CheckCreate: ({ Destination, Amount }) => ({ Destination, SendMax: Amount }),
  EscrowCreate: (paid) => ({ ...paid, FinishAfter: LATER }),
  LoanBrokerCoverDeposit: ({ Amount }) => ({ LoanBrokerID: HASH, Amount }),
  LoanBrokerCoverWithdraw: (paid) => ({ LoanBrokerID: HASH, ...paid }),
  LoanPay: ({ Amount }) => ({ LoanID: HASH, Amount }),
  NFTokenAcceptOffer: () => ({ NFTokenSellOffer: HASH }),
  NFTokenCreateOffer: ({ Destination, Amount }) => ({ NFTokenID: HASH, Owner: Destination, Amount }),
  OfferCreate: ({ Amount }) => ({ TakerGets: Amount, TakerPays: { ...ISSUED, value: '1' } }),
  PaymentChannelClaim: ({ Amount }) => ({ Channel: HASH, Balance: Amount, Amount }),
  PaymentChannelCreate: (paid) => ({ ...paid, SettleDelay: 1, PublicKey: `ED${'00'.repeat(32)}` }),
  PaymentChannelFund: ({ Amount }) => ({ Channel: HASH, Amount }),
  SponsorshipSet: ({ Destination, Amount }) => ({ Sponsee: Destination, FeeAmountDelta: Amount }),
  VaultDeposit: ({ Amount }) => ({ VaultID: HASH, Amount }),
  VaultWithdraw: (paid) => ({ VaultID: HASH, ...paid }),
  XChainAccountCreateCommit: ({ Destination, Amount }) => ({
    ...{ XChainBridge: BRIDGE, Destination, Amount, SignatureReward: '1' },
  }),
  XChainClaim: (paid) => ({ XChainBridge: BRIDGE, XChainClaimID: '1', ...paid }),
  XChainCommit: ({ Amount }) => ({ XChainBridge: BRIDGE, XChainClaimID: '1', Amount }),
};

/** The types that `policy lint` tries in addition to Payment. */
export const triedXrplTypes: readonly string[] = Object.keys(siblings);

function effectOf(Account: string, Destination: string, Amount: string): Effect {
  const sign = (transaction: XrplTransaction, marks?: readonly ConditionInput[]): TriedRequest => {
    const whole = { Account, Fee: '10', Sequence: 1, ...transaction };
    return rpc(
      METHOD,
      { params: { transaction: encodeXrplTransaction(whole), encoding: 'hex' } },
      { marks: marks ?? [fieldIs('TransactionType', String(transaction.TransactionType))] },
    );
  };
  const issued = { ...ISSUED, value: '1' };
  const pay = { TransactionType: 'Payment', Destination };
  return {
    calls: [sign({ ...pay, Amount })],
    others: [
      {
        kind: 'sibling_call',
        requests: [
          ...Object.entries(siblings).map(([TransactionType, fieldsOf]) =>
            sign({ TransactionType, ...fieldsOf({ Destination, Amount }) }),
          ),
          // Pays in an issued currency, but spends the native one.
          sign({ ...pay, Amount: issued, SendMax: Amount }, [
            { ...fieldIs('Payment.SendMax.drops', '0'), operator: 'gt' },
          ]),
        ],
      },
      {
        kind: 'token_transfer',
        requests: [sign({ ...pay, Amount: issued }, [fieldIs('Payment.Amount.currency', 'USD')])],
      },
      { kind: 'hash_signing', requests: [hashRequest(new Uint8Array(32).fill(0x11), METHOD)] },
    ],
  };
}

function fieldIs(field: string, value: string): ConditionInput {
  return { field_source: 'xrpl_transaction', field, operator: 'eq', value };
}
