import { invalidField } from '../../../errors.ts';
import type { KYBSubmitData, KYCSubmitData, VerificationDocument } from '../../../generated/schemas.ts';
import { isCountry } from '../../base/countries/countries.ts';

// Error messages never repeat submitted values.

const MISSING = 'expected a value: the first submission requires it';

/**
 * Checks data about a user before it is sent to the provider.
 *
 * @param isFirst whether the minimum set of fields is required.
 * @throws ApiError invalid_data
 */
export function checkPerson(
  data: KYCSubmitData,
  { isFirst, nowMs }: { readonly isFirst: boolean; readonly nowMs: number },
): void {
  if (isFirst) {
    requireMembers(data, ['first_name', 'last_name', 'date_of_birth', 'residential_address']);
    requireSome(data.identifying_information, '/data/identifying_information');
  }
  checkPastDate(data.date_of_birth, '/data/date_of_birth', nowMs);
  checkCountries(data, '/data');
  checkDocuments(data.identifying_information, '/data/identifying_information');
}

/**
 * Checks data about an organization, in the same way as `checkPerson` checks data about a user.
 *
 * @throws ApiError invalid_data
 */
export function checkBusiness(
  data: KYBSubmitData,
  { isFirst, nowMs }: { readonly isFirst: boolean; readonly nowMs: number },
): void {
  const persons = data.associated_persons ?? [];
  if (isFirst) {
    requireMembers(data, ['business_legal_name', 'business_type', 'registered_address']);
    if (!persons.some((person) => person.has_control)) {
      throw invalidField(
        '/data/associated_persons',
        'expected a person with `has_control`: the first submission requires one',
      );
    }
  }
  checkPastDate(data.incorporation_date, '/data/incorporation_date', nowMs);
  checkCountries(data, '/data');
  checkDocuments(data.identifying_information, '/data/identifying_information');
  checkFiles(data.documents, '/data/documents');
  for (const [index, person] of persons.entries()) {
    const at = `/data/associated_persons/${index}`;
    checkPastDate(person.date_of_birth, `${at}/date_of_birth`, nowMs);
    checkPastDate(person.relationship_established_at, `${at}/relationship_established_at`, nowMs);
    if (isFirst) requireSome(person.identifying_information, `${at}/identifying_information`);
    checkDocuments(person.identifying_information, `${at}/identifying_information`);
    checkFiles(person.documents, `${at}/documents`);
  }
}

function requireMembers<Data extends object>(data: Data, names: readonly (keyof Data & string)[]): void {
  const missing = names.find((name) => data[name] === undefined || data[name] === '');
  if (missing !== undefined) throw invalidField(`/data/${missing}`, MISSING);
}

function requireSome(list: readonly unknown[] | undefined, pointer: string): void {
  if (list === undefined || list.length === 0) throw invalidField(pointer, MISSING);
}

function checkPastDate(text: string | undefined, pointer: string, nowMs: number): void {
  if (text === undefined) return;
  const ms = checkDate(text, pointer);
  if (ms > nowMs) throw invalidField(pointer, 'expected a date in the past');
}

const DATE = /^\d{4}-\d{2}-\d{2}$/;

function checkDate(text: string, pointer: string): number {
  const ms = DATE.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  // `Date` reads 30 February as 2 March, so the string must match the parsed date.
  const isDate = !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text);
  if (!isDate) throw invalidField(pointer, 'expected a date, `YYYY-MM-DD`');
  return ms;
}

const countryMembers = new Set(['country', 'issuing_country', 'primary_regulatory_authority_country']);

/** Checks the country codes in the data at every depth. */
function checkCountries(value: unknown, at: string): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    const pointer = `${at}/${name}`;
    const listed = name === 'nationalities' && Array.isArray(member) ? member : undefined;
    for (const [index, code] of (listed ?? []).entries()) requireCountry(code, `${pointer}/${index}`);
    if (countryMembers.has(name)) requireCountry(member, pointer);
    else if (listed === undefined) checkCountries(member, pointer);
  }
}

function requireCountry(code: unknown, pointer: string): void {
  if (typeof code !== 'string' || !isCountry(code)) {
    throw invalidField(pointer, 'expected an ISO 3166-1 alpha-3 code in upper case');
  }
}

function checkDocuments(documents: readonly VerificationDocument[] | undefined, at: string): void {
  for (const [index, document] of (documents ?? []).entries()) {
    const pointer = `${at}/${index}`;
    if (document.expiration !== undefined) checkDate(document.expiration, `${pointer}/expiration`);
    checkFile(document.image_front, `${pointer}/image_front`);
    checkFile(document.image_back, `${pointer}/image_back`);
  }
}

function checkFiles(documents: readonly { readonly file: string }[] | undefined, at: string): void {
  for (const [index, { file }] of (documents ?? []).entries()) checkFile(file, `${at}/${index}/file`);
}

/** The first bytes of each file type: PNG (ISO 15948 §5.2), JPEG (SOI and the next marker), PDF (ISO 32000 §7.5.2). */
const magics: readonly (readonly [type: string, bytes: Uint8Array])[] = [
  ['image/png', Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)],
  ['image/jpeg', Uint8Array.of(0xff, 0xd8, 0xff)],
  ['application/pdf', Uint8Array.of(0x25, 0x50, 0x44, 0x46, 0x2d)],
];
const PADDING = /={1,2}$/;
/**
 * Finds one invalid character. A pattern with `+` for the whole string would be wrong: V8 keeps a backtracking entry
 * for each character, and a body of 16 MiB would exceed its limit of 64 MB.
 */
const NOT_BASE64 = /[^A-Za-z0-9+/]/;

function checkFile(text: string | undefined, pointer: string): void {
  if (text === undefined) return;
  // The longest magic number has 8 bytes.
  const first = Buffer.from(text.slice(0, 12), 'base64');
  const isKnown = magics.some(([, bytes]) => bytes.every((byte, index) => first[index] === byte));
  if (text.length % 4 !== 0 || !isKnown || NOT_BASE64.test(text.replace(PADDING, ''))) {
    throw invalidField(pointer, 'expected a PNG, JPEG or PDF in base64');
  }
}
