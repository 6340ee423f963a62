import type {
  CustomerOrder,
  CustomerSnapshot,
  FiatProvider,
  FiatRefusal,
  Submission,
} from '../../ports/fiat-providers.ts';
import { refusal, requireSame, requireText, unusable, valueIfFound } from './answers.ts';
import type { BridgeClient, BridgeObject } from './client.ts';
import { contactBody, pointerOfMember, submissionBody } from './customer-bodies.ts';
import { snapshotOf } from './snapshot.ts';

type Customers = Pick<
  FiatProvider,
  'openCustomer' | 'termsLink' | 'verificationLink' | 'submit' | 'customer'
>;

/** Customers of the service, and the links to its hosted pages. */
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
      // The page takes it from its own address.
      const url = new URL(link);
      url.searchParams.set('redirect_uri', redirectUri);
      return url.toString();
    },
    verificationLink: (id, { redirectUri, endorsements = [] }) =>
      linkOf(client, ['customers', id, 'kyc_link'], {
        // The page asks for what one set of services needs, and `base` is what it always asks for.
        endorsement: endorsements.find((name) => name !== 'base'),
        redirect_uri: redirectUri,
      }),
  };
}

/**
 * Opens the customer if it has no id yet, and updates it.
 *
 * CHOICE: a customer is opened empty, with a key made from our reference, and everything known about it is sent
 * afterwards. So one reference is one customer, and a customer that another user's email address belongs to is never
 * taken over, as the service's links by email would do.
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
