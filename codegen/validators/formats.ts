import { fullFormats } from 'ajv-formats/dist/formats.js';

// The Unix time of 9999-12-31T23:59:59.999Z. Larger values are most likely in the wrong unit.
const LAST_SECOND = 253402300799;
const LAST_MILLISECOND = 253402300799999;

function integerUpTo(last: number): { type: 'number'; validate: (value: number) => boolean } {
  return { type: 'number', validate: (value) => Number.isInteger(value) && value >= 0 && value <= last };
}

/** The formats that the contract may use as `format`, because every tool knows them. */
export const standardFormats = {
  date: fullFormats.date,
  'date-time': fullFormats['date-time'],
  email: fullFormats.email,
  uri: fullFormats.uri,
  uuid: fullFormats.uuid,
};

/**
 * The formats that the contract may use as `x-format`, because validators reject or report a `format` that they do
 * not know. The Unix times also have `format: int64`.
 */
export const ownFormats = {
  /**
   * 24 lower-case letters and digits. CHOICE: a leading digit is allowed, so that the error for such an id is "not
   * found" instead of "malformed".
   */
  cuid2: /^[0-9a-z]{24}$/,
  /** The id of a user: the neutral prefix and a generated part. */
  'user-did': /^did:service:[a-z0-9]{1,64}$/,
  'unix-seconds': integerUpTo(LAST_SECOND),
  'unix-ms': integerUpTo(LAST_MILLISECOND),
  /** Seconds or milliseconds. The contract does not specify which. */
  'unix-time': integerUpTo(LAST_MILLISECOND),
};

/** The formats with which the generator compiles. The generated validators include this table. */
export const formats = {
  ...standardFormats,
  ...ownFormats,
  /**
   * An integer parameter before it is converted: a JSON number with an integral value, as JSON Schema 2020-12 defines
   * `integer`, because typed clients write floating-point numbers. It allows no other notation that JavaScript reads
   * as a number, and at most the digits of a finite number. `type: integer` then checks the value.
   */
  'integer-text': /^-?(?:0|[1-9]\d{0,99})(?:\.\d{1,99})?(?:[eE][+-]?\d{1,2})?$/,
};
