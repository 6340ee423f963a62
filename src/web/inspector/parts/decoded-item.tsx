import type { DecodedItem as Item } from '../../../sandbox/generated/schemas.ts';
import { Address } from '../wallets/address.tsx';
import { Fact } from './fact.tsx';

/** A decoded call or event with its arguments. */
export function DecodedItem({ title, item }: { readonly title: string; readonly item: Item }) {
  return (
    <>
      <h3>{title}</h3>
      <dl>
        {item.arguments.map(({ name, type, value }, index) => (
          <Fact key={index} name={name === '' ? type : name}>
            {type === 'address' ? <Address of={value} what={name === '' ? 'the address' : name} /> : value}
          </Fact>
        ))}
      </dl>
    </>
  );
}
