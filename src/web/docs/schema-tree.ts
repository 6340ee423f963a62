import { element, prose } from './element.ts';
import type { Schema, Schemas } from './operation-document.ts';
import { kindOf, type Row, resolve, rowsOf, rulesOf } from './schema-facts.ts';

/** The rows of a schema as a tree. Child rows are created when their parent is unfolded. */
export function schemaTree(schema: Schema, schemas: Schemas): HTMLElement {
  const rows = rowsOf(schema, schemas);
  if (rows.length === 0)
    return rowItem({ name: kindOf(schema, schemas), schema, isRequired: false }, schemas);
  return list(rows, schemas);
}

function list(rows: readonly Row[], schemas: Schemas): HTMLUListElement {
  return element('ul', { class: 'tree' }, ...rows.map((row) => element('li', {}, rowItem(row, schemas))));
}

function rowItem(row: Row, schemas: Schemas): HTMLElement {
  const below = rowsOf(row.schema, schemas);
  const title = [
    element('code', { class: 'name' }, row.name),
    element('span', { class: 'kind' }, ` ${kindOf(row.schema, schemas)}`),
    row.isRequired ? element('span', { class: 'required' }, ' required') : undefined,
  ];
  const facts = factsOf(row.schema, schemas);
  if (below.length === 0) return element('div', { class: 'row' }, ...title, ...facts);
  const details = element('details', {}, element('summary', {}, ...title), ...facts);
  details.addEventListener('toggle', () => {
    if (details.open && details.lastElementChild?.className !== 'tree') details.append(list(below, schemas));
  });
  return details;
}

function factsOf(given: Schema, schemas: Schemas): HTMLElement[] {
  const schema = resolve(given, schemas);
  const rules = rulesOf(schema, schemas);
  const values = schema.enum?.map((value) => `\`${String(value)}\``).join(', ');
  return [
    ...(schema.description === undefined ? [] : [element('p', {}, prose(schema.description))]),
    ...(values === undefined ? [] : [element('p', { class: 'rules' }, prose(`One of ${values}`))]),
    ...(rules.length === 0 ? [] : [element('p', { class: 'rules' }, prose(rules.join(' · ')))]),
  ];
}
