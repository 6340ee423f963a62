import { canonicalJson } from './sign-payload.ts';

/** A request in the form from which samples in several languages are written. */
export interface SampleRequest {
  readonly method: string;
  readonly url: string;
  /** All headers that the reader has set, without credentials, content type and signature. */
  readonly headers: Readonly<Record<string, string>>;
  /** The parsed body; undefined if there is none. */
  readonly value: unknown;
  readonly isForm: boolean;
  /** The prefix of header names, for example `service` in `service-app-id`. */
  readonly prefix: string;
  /** Empty for operations that need no app id. */
  readonly appId: string;
  /** A published secret, which is written into the code. If undefined, the code reads the variable `APP_SECRET`. */
  readonly appSecret: string | undefined;
  readonly credentials: 'secret' | 'user' | 'none';
  /** The files with the private keys that sign, such as `alice.pem`. */
  readonly keyFiles: readonly string[];
  /** The certificate authority to trust; undefined if the system trusts the server. */
  readonly caFile: string | undefined;
}

/** The media type of the body. */
export const contentType = ({ isForm }: SampleRequest): string =>
  isForm ? 'application/x-www-form-urlencoded' : 'application/json';

/** Returns the fields of a form as pairs of strings. */
export function formFields(value: unknown): [string, string][] {
  return Object.entries(value as object).map(([name, inner]) => [name, String(inner)]);
}

/** Returns the body's text. JSON is in canonical form, so that code can sign it without a library. */
export function bodyText({ value, isForm }: SampleRequest): string {
  return isForm ? new URLSearchParams(formFields(value)).toString() : canonicalJson(value);
}

/** Returns the headers that a signature covers, except the app id. */
export function otherSignedHeaders({ headers, prefix }: SampleRequest): [string, string][] {
  const signed = [`${prefix}-idempotency-key`, `${prefix}-request-expiry`];
  return Object.entries(headers).filter(([name]) => signed.includes(name));
}

/** Returns the parts of the payload around the body, the app id and the URL, which samples keep in variables. */
export function payloadParts(request: SampleRequest): { readonly headers: string; readonly end: string } {
  const more = otherSignedHeaders(request)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `,${JSON.stringify(name)}:${JSON.stringify(value)}`);
  return { headers: more.join(''), end: `},"method":"${request.method}","url":"` };
}
