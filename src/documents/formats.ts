import { fullFormats } from 'ajv-formats/dist/formats.js';

/** The formats of JSON Schema and OpenAPI; the validators of a document refer to this table. */
export const formats = fullFormats;
