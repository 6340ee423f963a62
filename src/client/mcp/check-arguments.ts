/** The part of JSON Schema that the inputs of tools use. */
export interface JsonSchema {
  readonly type: 'object';
  readonly properties: Readonly<Record<string, PropertySchema>>;
  readonly required: readonly string[];
  readonly additionalProperties: false;
}

export interface PropertySchema {
  readonly type: 'string' | 'integer' | 'boolean' | 'array' | 'object';
  readonly description: string;
  readonly items?: { readonly type: 'string' };
  readonly enum?: readonly string[];
}

/** What is wrong with the arguments of a tool; undefined if nothing is. */
export function faultOf(input: unknown, { properties, required }: JsonSchema): string | undefined {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return 'expected an object';
  const given = input as Readonly<Record<string, unknown>>;
  const missing = required.find((name) => given[name] === undefined);
  if (missing !== undefined) return `${missing}: is required`;
  for (const [name, value] of Object.entries(given)) {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (schema === undefined) return `${name}: expected one of ${Object.keys(properties).join(', ')}`;
    if (!isOf(value, schema)) return `${name}: expected ${nameOf(schema)}, got ${JSON.stringify(value)}`;
  }
  return undefined;
}

function nameOf({ type, enum: choices, items }: PropertySchema): string {
  if (choices !== undefined) return choices.join(' or ');
  return items === undefined ? `a value of type ${type}` : `a list of values of type ${items.type}`;
}

function isOf(value: unknown, { type, enum: choices, items }: PropertySchema): boolean {
  switch (type) {
    case 'string':
      return typeof value === 'string' && (choices?.includes(value) ?? true);
    case 'integer':
      return Number.isSafeInteger(value);
    case 'boolean':
      return typeof value === 'boolean';
    case 'array':
      return (
        Array.isArray(value) && (items === undefined || value.every((item) => typeof item === items.type))
      );
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value);
  }
}
