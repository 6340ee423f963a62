import type { CustomerOrder, Submission } from '../../ports/fiat-providers.ts';

type Fields = Readonly<Record<string, unknown>>;

/** What is known of a new customer before anything was submitted; only terms and services of one that is known. */
export function contactBody(order: CustomerOrder): object {
  if (order.id !== undefined) return present(termsOf(order));
  // The hosted pages ask for a person's name.
  const name = order.kind === 'business' ? { business_legal_name: order.name } : {};
  return present({ ...termsOf(order), email: order.email, ...name });
}

/**
 * Submitted data in the service's form.
 *
 * NOTE: fields that its document does not have are sent under our names.
 */
export function submissionBody(submission: Submission): object {
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

/** A person, or a business, whose documents have the same form. */
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

/** The first characters in base64 of the types that are accepted: PNG, JPEG and PDF. */
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

/** A member such as `residential_address.postal_code` as a pointer into the submitted data. */
export function pointerOfMember(member: string): string | undefined {
  const parts = member.replaceAll(/\[(\d+)\]/g, '.$1').split('.');
  const [first = '', ...rest] = parts.map((part, index) => {
    const isTop = index === 0 || part === 'birth_date' || part === 'nationality';
    return isTop && Object.hasOwn(ourNames, part) ? ourNames[part]! : part;
  });
  return first === '' ? undefined : ['', first, ...rest].join('/');
}
