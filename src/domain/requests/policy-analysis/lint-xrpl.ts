import type { ConditionInput } from '../../../policy/source.ts';
import { encodeXrplTransaction, type XrplTransaction } from '../../../signing/xrpl/transaction.ts';
import {
  boundaryNumbers,
  distinct,
  type Effect,
  hashRequest,
  type LintSubject,
  MOST_RECEIVERS,
  namedValues,
  rpc,
  type TriedRequest,
} from './lint-requests.ts';

const METHOD = 'xrpl_signTransaction';
/** The account of the ledger's genesis, and two that have no key. */
const SENDER = 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh';
const STRANGER = 'rrrrrrrrrrrrrrrrrrrrrhoLvTp';
const ISSUER = 'rrrrrrrrrrrrrrrrrrrrBZbvji';
/** More than exist. */
const MAX_DROPS = 10n ** 17n;
/** Seconds since 2000: in 2100. */
const LATER = 3_155_760_000;

/** Payments with the receivers and amounts that conditions name, and types of transactions that pay the same. */
export function* xrplEffects({ conditions, sender = SENDER }: LintSubject): Generator<Effect> {
  const named = (field: string) => namedValues(conditions, (each) => each.field === field);
  for (const to of distinct([STRANGER, ...named('Payment.Destination')], MOST_RECEIVERS)) {
    for (const drops of boundaryNumbers(named('Payment.Amount.drops'), MAX_DROPS)) {
      if (drops > 0n) yield effectOf(sender, to, String(drops));
    }
  }
}

function effectOf(Account: string, Destination: string, Amount: string): Effect {
  const sign = (transaction: XrplTransaction, marks?: readonly ConditionInput[]): TriedRequest => {
    const whole = { Account, Fee: '10', Sequence: 1, ...transaction };
    return rpc(
      METHOD,
      { params: { transaction: encodeXrplTransaction(whole), encoding: 'hex' } },
      { marks: marks ?? [typeIs(String(transaction.TransactionType))] },
    );
  };
  const issued = { currency: 'USD', issuer: ISSUER, value: '1' };
  return {
    calls: [sign({ TransactionType: 'Payment', Destination, Amount })],
    others: [
      {
        kind: 'sibling_call',
        requests: [
          sign({ TransactionType: 'EscrowCreate', Destination, Amount, FinishAfter: LATER }),
          sign({ TransactionType: 'CheckCreate', Destination, SendMax: Amount }),
          sign({
            ...{ TransactionType: 'PaymentChannelCreate', Destination, Amount },
            ...{ SettleDelay: 1, PublicKey: `ED${'00'.repeat(32)}` },
          }),
          sign({ TransactionType: 'AccountDelete', Destination }),
          // Another key then signs for the account.
          sign({ TransactionType: 'SetRegularKey', RegularKey: Destination }),
        ],
      },
      {
        kind: 'token_transfer',
        requests: [
          sign({ TransactionType: 'Payment', Destination, Amount: issued }, [
            {
              field_source: 'xrpl_transaction',
              field: 'Payment.Amount.currency',
              operator: 'eq',
              value: 'USD',
            },
          ]),
        ],
      },
      { kind: 'hash_signing', requests: [hashRequest(new Uint8Array(32).fill(0x11), METHOD)] },
    ],
  };
}

function typeIs(value: string): ConditionInput {
  return { field_source: 'xrpl_transaction', field: 'TransactionType', operator: 'eq', value };
}
