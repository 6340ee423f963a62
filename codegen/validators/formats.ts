import { fullFormats } from 'ajv-formats/dist/formats.js';

// 9999-12-31T23:59:59.999Z: a value beyond it is not a time but a mistake of unit.
const LAST_SECOND = 253402300799;
const LAST_MILLISECOND = 253402300799999;

function integerUpTo(last: number): { type: 'number'; validate: (value: number) => boolean } {
  return { type: 'number', validate: (value) => Number.isInteger(value) && value >= 0 && value <= last };
}

/**
 * Every `format` that the contract may use: the standard ones from ajv-formats and ours.
 * The generator compiles with this table and the generated validators carry it within them.
 */
export const formats = {
  date: fullFormats.date,
  'date-time': fullFormats['date-time'],
  email: fullFormats.email,
  uri: fullFormats.uri,
  uuid: fullFormats.uuid,
  /** 24 lower-case letters and digits. CHOICE: a leading digit is let in, so such an id is unknown, not malformed. */
  cuid2: /^[0-9a-z]{24}$/,
  /** The id of a user: the neutral prefix and the part that the service made. */
  'user-did': /^did:service:[a-z0-9]{1,64}$/,
  'unix-seconds': integerUpTo(LAST_SECOND),
  'unix-ms': integerUpTo(LAST_MILLISECOND),
  /** Seconds or milliseconds, the contract does not say which. */
  'unix-time': integerUpTo(LAST_MILLISECOND),
};
