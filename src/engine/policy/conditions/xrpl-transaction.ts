import type { ActionUnit } from '../action.ts';
import type { ConditionSource, ResolvedField } from '../condition-source.ts';
import {
  absent,
  type Observation,
  present,
  readXrplCurrency,
  unreadable,
  type ValueKind,
} from '../values.ts';

const AMOUNT_FIELDS = [
  'Payment.Amount',
  'Payment.SendMax',
  'Payment.DeliverMin',
  'OfferCreate.TakerPays',
  'OfferCreate.TakerGets',
];

const FIELDS: Readonly<Record<string, ValueKind>> = {
  TransactionType: 'text',
  'Payment.Destination': 'xrpl_address',
  'Payment.DestinationTag': 'number',
  'OfferCreate.Expiration': 'number',
  'TrustSet.QualityIn': 'number',
  'TrustSet.QualityOut': 'number',
  'TrustSet.LimitAmount.value': 'decimal',
  'TrustSet.LimitAmount.currency': 'xrpl_currency',
  'TrustSet.LimitAmount.issuer': 'xrpl_address',
  ...Object.fromEntries(
    AMOUNT_FIELDS.flatMap((field): [string, ValueKind][] => [
      [`${field}.drops`, 'number'],
      [`${field}.value`, 'decimal'],
      [`${field}.currency`, 'xrpl_currency'],
      [`${field}.issuer`, 'xrpl_address'],
    ]),
  ),
};

/** The transaction types of the ledger. Source: the definitions of ripple-binary-codec. */
export const xrplTransactionTypes: readonly string[] = `
  AMMBid AMMClawback AMMCreate AMMDelete AMMDeposit AMMVote AMMWithdraw AccountDelete AccountSet Batch CheckCancel
  CheckCash CheckCreate Clawback ConfidentialMPTClawback ConfidentialMPTConvert ConfidentialMPTConvertBack
  ConfidentialMPTMergeInbox ConfidentialMPTSend CredentialAccept CredentialCreate CredentialDelete DIDDelete
  DIDSet DelegateSet DepositPreauth EnableAmendment EscrowCancel EscrowCreate EscrowFinish LedgerStateFix
  LoanBrokerCoverClawback LoanBrokerCoverDeposit LoanBrokerCoverWithdraw LoanBrokerDelete LoanBrokerSet LoanDelete
  LoanManage LoanPay LoanSet MPTokenAuthorize MPTokenIssuanceCreate MPTokenIssuanceDestroy MPTokenIssuanceSet
  NFTokenAcceptOffer NFTokenBurn NFTokenCancelOffer NFTokenCreateOffer NFTokenMint NFTokenModify OfferCancel
  OfferCreate OracleDelete OracleSet Payment PaymentChannelClaim PaymentChannelCreate PaymentChannelFund
  PermissionedDomainDelete PermissionedDomainSet SetFee SetRegularKey SignerListSet SponsorshipSet
  SponsorshipTransfer TicketCreate TrustSet UNLModify VaultClawback VaultCreate VaultDelete VaultDeposit VaultSet
  VaultWithdraw XChainAccountCreateCommit XChainAddAccountCreateAttestation XChainAddClaimAttestation XChainClaim
  XChainCommit XChainCreateBridge XChainCreateClaimID XChainModifyBridge
`
  .trim()
  .split(/\s+/);

function expectedInstead(field: string): ResolvedField['expectedInstead'] {
  if (field === 'TransactionType')
    return (value) =>
      xrplTransactionTypes.includes(value) ? undefined : 'a type of XRP Ledger transactions';
  if (!field.endsWith('.currency')) return undefined;
  return (value) =>
    readXrplCurrency(value) === undefined
      ? 'a currency that is issued, three characters or 40 hex digits'
      : undefined;
}

function readScalar(kind: ValueKind, value: unknown): Observation {
  const isReadable = typeof value === 'string' || (kind === 'number' && typeof value === 'number');
  return isReadable ? present(String(value)) : unreadable('expected a string or a number');
}

function readAmount(amount: unknown, part: string): Observation {
  // A native amount is a string of drops; an issued amount is an object with value, currency and issuer.
  if (typeof amount === 'string') return part === 'drops' ? present(amount) : absent('a native amount');
  if (typeof amount !== 'object' || amount === null) return unreadable('expected an amount');
  if (part === 'drops') return absent('an issued amount');
  const value = (amount as Record<string, unknown>)[part];
  return typeof value === 'string' ? present(value) : unreadable(`the amount has no ${part}`);
}

function readTransaction(
  unit: ActionUnit,
  read: (transaction: Readonly<Record<string, unknown>>) => Observation,
): Observation {
  if (unit.undecodable !== undefined) return unreadable(unit.undecodable);
  return unit.xrplTransaction === undefined ? absent('not an XRPL transaction') : read(unit.xrplTransaction);
}

export const xrplTransaction: ConditionSource = {
  methods: ['xrpl_signTransaction'],
  resolve({ field }) {
    const kind = Object.hasOwn(FIELDS, field) ? FIELDS[field] : undefined;
    if (kind === undefined) return undefined;
    const [type = '', member = '', part] = field.split('.');
    return {
      kind,
      expectedInstead: expectedInstead(field),
      read: (unit) =>
        readTransaction(unit, (transaction) => {
          const actual = transaction.TransactionType;
          if (typeof actual !== 'string') return unreadable('the transaction has no type');
          if (field === 'TransactionType') return present(actual);
          if (actual !== type) return absent(`the transaction is ${actual}`);
          const value = transaction[member];
          if (value === undefined) return absent(`the transaction has no ${member}`);
          return part === undefined ? readScalar(kind, value) : readAmount(value, part);
        }),
    };
  },
};
