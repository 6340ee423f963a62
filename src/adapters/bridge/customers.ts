import { createHash, type KeyObject, verify } from 'node:crypto';
import type {
  CustomerOrder,
  CustomerSnapshot,
  FiatAsset,
  FiatHint,
  FiatNotification,
  FiatProvider,
  FiatRefusal,
  Submission,
} from '../../ports/fiat.ts';
import {
  type BridgeClient,
  type BridgeObject,
  objectOf,
  objectsOf,
  refusal,
  requireSame,
  requireText,
  textOf,
  textsOf,
  unusable,
  valueIfFound,
} from './client.ts';

type Fields = Readonly<Record<string, unknown>>;

/**
 * Returns the body that creates a customer. If the provider already has the customer, it contains only the terms and
 * the services.
 */
function contactBody(order: CustomerOrder): object {
  if (order.id !== undefined) return present(termsOf(order));
  // The hosted pages ask for the name of a person.
  const name = order.kind === 'business' ? { business_legal_name: order.name } : {};
  return present({ ...termsOf(order), email: order.email, ...name });
}

/**
 * Converts submitted data to the service's format.
 *
 * NOTE: fields that its documentation does not contain are sent under their names in the API.
 */
function submissionBody(submission: Submission): object {
  const person = personBody(submission.data as Fields);
  const associated = (submission.data as { associated_persons?: readonly Fields[] }).associated_persons;
  return present({
    ...termsOf(submission),
    ...person,
    associated_persons: associated?.map((each) => present(personBody(each))),
  });
}

function termsOf({ clientAgreementId, endorsements }: CustomerOrder | Submission): Fields {
  return { signed_agreement_id: clientAgreementId, endorsements };
}

/** Converts the data of a person, or the data of a business that has the same format. */
function personBody({ date_of_birth, nationalities, ...fields }: Fields): Fields {
  return {
    ...fields,
    birth_date: date_of_birth,
    nationality: (nationalities as readonly string[] | undefined)?.[0],
    identifying_information: (fields.identifying_information as readonly Fields[] | undefined)?.map(
      (document) =>
        present({
          ...document,
          image_front: dataUri(document.image_front),
          image_back: dataUri(document.image_back),
        }),
    ),
    documents: (fields.documents as readonly Fields[] | undefined)?.map((document) =>
      present({ ...document, file: dataUri(document.file) }),
    ),
  };
}

function present(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** The first base64 characters of the accepted file types: PNG, JPEG and PDF. */
const types: readonly (readonly [start: string, type: string])[] = [
  ['iVBOR', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['JVBER', 'application/pdf'],
];

function dataUri(base64: unknown): string | undefined {
  if (typeof base64 !== 'string') return undefined;
  const found = types.find(([start]) => base64.startsWith(start));
  return `data:${found?.[1] ?? 'application/octet-stream'};base64,${base64}`;
}

const ourNames: Readonly<Record<string, string>> = {
  birth_date: 'date_of_birth',
  nationality: 'nationalities',
  signed_agreement_id: '',
  endorsements: '',
  type: '',
};

/** Converts a member such as `residential_address.postal_code` to a pointer into the submitted data. */
function pointerOfMember(member: string): string | undefined {
  const parts = member.replaceAll(/\[(\d+)\]/g, '.$1').split('.');
  const [first = '', ...rest] = parts.map((part, index) => {
    const isTop = index === 0 || part === 'birth_date' || part === 'nationality';
    return isTop && Object.hasOwn(ourNames, part) ? ourNames[part]! : part;
  });
  return first === '' ? undefined : ['', first, ...rest].join('/');
}

/** Converts a customer of the service, without its personal data. */
function snapshotOf(customer: BridgeObject): CustomerSnapshot {
  const status = requireText(customer, 'status');
  const capabilities = objectOf(customer, 'capabilities');
  const capability = (name: string): string => textOf(capabilities, name) ?? 'pending';
  return {
    id: requireText(customer, 'id'),
    status,
    terms: { status: customer.has_accepted_terms_of_service === true ? 'approved' : 'pending' },
    verification: {
      // The service has one status for the customer and for the verification. In its links, only the word for success
      // differs.
      status: status === 'active' ? 'approved' : status,
      ...(status === 'rejected' ? { rejectionReasons: reasonsOf(customer) } : {}),
    },
    capabilities: {
      ...{ payin_crypto: capability('payin_crypto'), payout_crypto: capability('payout_crypto') },
      ...{ payin_fiat: capability('payin_fiat'), payout_fiat: capability('payout_fiat') },
    },
    endorsements: objectsOf(customer, 'endorsements').map((endorsement) => ({
      name: requireText(endorsement, 'name'),
      status: requireText(endorsement, 'status'),
      missing: missingOf(objectOf(endorsement, 'requirements').missing),
    })),
    requirementsDue: textsOf(customer, 'requirements_due'),
    futureRequirementsDue: textsOf(customer, 'future_requirements_due'),
  };
}

/** Returns the reasons that may be shown to the customer. Reasons for developers are omitted. */
function reasonsOf(customer: BridgeObject): readonly string[] {
  return objectsOf(customer, 'rejection_reasons')
    .map((each) => textOf(each, 'reason'))
    .filter((reason) => reason !== undefined);
}

/** Returns the names in `{ all_of: ["a", { any_of: ["b", "c"] }] }`; null if nothing is missing. */
function missingOf(missing: unknown): readonly string[] | null {
  const names = namesIn(missing, 0);
  return names.length === 0 ? null : [...new Set(names)];
}

const MAX_DEPTH = 6;

function namesIn(value: unknown, depth: number): readonly string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return [];
  return Object.values(value).flatMap((each) => namesIn(each, depth + 1));
}

type Customers = Pick<
  FiatProvider,
  'openCustomer' | 'termsLink' | 'verificationLink' | 'submit' | 'customer'
>;

/** Returns the methods for the customers of the service, and for the links to its hosted pages. */
export function bridgeCustomers(client: BridgeClient): Customers {
  return {
    openCustomer: (order) => openAndUpdate(client, order, contactBody(order)),
    submit: (submission) => openAndUpdate(client, submission, submissionBody(submission)),
    async customer(id) {
      const customer = valueIfFound(await client.get(['customers', id]));
      return customer && readCustomer(customer, id);
    },
    async termsLink(id, redirectUri) {
      const link = await linkOf(client, ['customers', id, 'tos_acceptance_link'], {});
      if (link === undefined || redirectUri === undefined) return link;
      // The page reads the value from its own URL.
      const url = new URL(link);
      url.searchParams.set('redirect_uri', redirectUri);
      return url.toString();
    },
    verificationLink: (id, { redirectUri, endorsements = [] }) =>
      linkOf(client, ['customers', id, 'kyc_link'], {
        // The page requests the data that one endorsement needs. It always requests the data of `base`.
        endorsement: endorsements.find((name) => name !== 'base'),
        redirect_uri: redirectUri,
      }),
  };
}

/**
 * Opens the customer if it has no id yet, and updates it.
 *
 * CHOICE: a customer is opened without data, under a key that is derived from the server's reference, and all known
 * data is sent afterwards. Each reference therefore has exactly one customer. If customers were found by email address
 * instead, the service could return the customer of another user with the same address.
 */
async function openAndUpdate(
  client: BridgeClient,
  order: CustomerOrder | Submission,
  body: object,
): Promise<CustomerSnapshot | FiatRefusal> {
  let { id } = order;
  if (id === undefined) {
    const type = order.kind === 'person' ? 'individual' : 'business';
    const opened = await client.post(['customers'], { type }, `customer ${order.reference}`);
    if ('refusal' in opened) return refusal(opened.refusal, 'data');
    id = requireText(opened.value, 'id');
  }
  const path = ['customers', id];
  const updated = Object.keys(body).length === 0 ? await client.get(path) : await client.put(path, body);
  if ('value' in updated) return readCustomer(updated.value, id);
  if (updated.refusal.status === 404) throw unusable('it does not know a customer that it opened');
  return refusal(updated.refusal, 'data', pointerOfMember);
}

function readCustomer(customer: BridgeObject, id: string): CustomerSnapshot {
  requireSame(customer, 'id', id);
  return snapshotOf(customer);
}

async function linkOf(
  client: BridgeClient,
  path: readonly string[],
  query: Readonly<Record<string, string | undefined>>,
): Promise<string | undefined> {
  const answer = valueIfFound(await client.get(path, query));
  if (answer === undefined) return undefined;
  const url = requireText(answer, 'url');
  if (!URL.canParse(url) || new URL(url).protocol !== 'https:') throw unusable('expected an `https` link');
  return url;
}

/** CHOICE: a notification is accepted for as long as the provider recommends. */
const MAX_AGE_MS = 600_000;
/** How far the provider's clock may be ahead of the system clock. */
const MAX_AHEAD_MS = 60_000;

const HEADER = /^t=(\d{1,15}),v0=([A-Za-z0-9+/]+={0,2})$/;

/**
 * Returns the objects that a notification of the provider is about. Returns undefined unless
 * `X-Webhook-Signature: t=<ms>,v0=<base64>` is a valid RSA signature. The rest of the notification is ignored.
 */
export function readBridgeHint(
  publicKey: KeyObject,
  { headers, body, nowMs }: FiatNotification,
): readonly FiatHint[] | undefined {
  const [, time, signature] = HEADER.exec(headers['x-webhook-signature'] ?? '') ?? [];
  if (time === undefined || signature === undefined) return undefined;
  const age = nowMs - Number(time);
  if (age > MAX_AGE_MS || age < -MAX_AHEAD_MS) return undefined;
  // NOTE: the service signs the SHA-256 digest of `<time>.<body>` with RSA-SHA-256, so the content is hashed twice.
  const digest = createHash('sha256').update(`${time}.`, 'utf8').update(body).digest();
  if (!verify('sha256', digest, publicKey, Buffer.from(signature, 'base64'))) return undefined;
  return hintsIn(body);
}

const kinds: Readonly<Record<string, FiatHint['kind']>> = {
  customer: 'customer',
  kyc_link: 'customer',
  virtual_account_activity: 'virtual_account',
  'virtual_account.activity': 'virtual_account',
  transfer: 'payout',
};

function hintsIn(body: Uint8Array): readonly FiatHint[] {
  const event = parse(body);
  if (event === undefined) return [];
  const { event_category: category, event_object_id: objectId, event_object: object } = event;
  const kind = kinds[String(category)];
  if (kind === undefined) return [];
  const { customer_id: customerId, virtual_account_id: accountId } = (object ?? {}) as Record<
    string,
    unknown
  >;
  const named = kind === 'virtual_account' ? accountId : category === 'kyc_link' ? customerId : objectId;
  return typeof named === 'string' ? [{ kind, id: named }] : [];
}

function parse(body: Uint8Array): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(body).toString('utf8'));
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** The names of the chains in the service. Test networks have the names of their main networks. */
const rails: Readonly<Record<string, string>> = {
  ethereum: 'ethereum',
  sepolia: 'ethereum',
  arbitrum: 'arbitrum',
  arbitrum_sepolia: 'arbitrum',
  avalanche: 'avalanche_c_chain',
  avalanche_fuji: 'avalanche_c_chain',
  base: 'base',
  base_sepolia: 'base',
  optimism: 'optimism',
  optimism_sepolia: 'optimism',
  polygon: 'polygon',
  polygon_amoy: 'polygon',
  solana: 'solana',
  solana_devnet: 'solana',
  tron: 'tron',
  tron_nile: 'tron',
};

/** The assets that have the same names in the service. */
const currencies: ReadonlySet<string> = new Set(['usdc', 'usdt', 'usdb', 'eurc', 'pyusd', 'dai']);

/** Returns an asset and its chain under the service's names. Returns undefined if the service does not support both. */
export function routeOf({ chain, asset }: Pick<FiatAsset, 'chain' | 'asset'>) {
  const rail = Object.hasOwn(rails, chain) ? rails[chain] : undefined;
  return rail === undefined || !currencies.has(asset) ? undefined : { payment_rail: rail, currency: asset };
}
