package data

import "strings"

// Word lists of the generators. Short common words, so that a small vocabulary covers them.
var (
	cities = strings.Fields(`Oslo Lima Rome Cairo Paris Tokyo Delhi Quito Hanoi Accra Turin Porto Seoul Dakar Milan
		Osaka Berlin London Madrid Lisbon Dublin Vienna Prague Warsaw Athens Geneva Zurich Munich Naples Seville
		Bergen Tallinn Riga Vilnius Kyiv Sofia Tirana Tunis Rabat Lagos Nairobi Harare Luanda Kampala Tbilisi Yerevan
		Baku Tehran Muscat Doha Amman Beirut Ankara Izmir Mumbai Chennai Dhaka Colombo Bangkok Manila Jakarta Taipei
		Kyoto Sydney Perth Darwin Hobart Auckland Suva Apia Boston Denver Dallas Austin Seattle Chicago Detroit
		Toronto Ottawa Montreal Havana Panama Bogota Caracas Cusco Santiago Montevideo Recife Salvador Brasilia`)

	women = strings.Fields("Anna Mira Lena Ruth Clara Nora Tess Ivy Rosa Maya Olga June")
	men   = strings.Fields("Tom Ben Karl Omar Hugo Sam Leo Ivan Max Paul Felix Dan")

	places  = strings.Fields("garden kitchen market school barn harbor library forest mill tower park hall")
	things  = strings.Fields("key lamp book coat basket bell rope cup map drum knife ribbon")
	colours = strings.Fields("red blue green yellow white black brown grey")
	foods   = strings.Fields("bread soup apple cheese honey rice pear cake fish plum")
	animals = strings.Fields("dog cat horse goat fox owl duck hen wolf bear")
	tools   = strings.Fields("hammer saw spade needle chisel wrench shovel axe drill file")
	clothes = strings.Fields("hat shirt scarf glove boot sock belt jacket apron cap")
	trees   = strings.Fields("oak elm birch pine willow maple cedar ash beech alder")
	metals  = strings.Fields("iron gold silver copper tin zinc lead nickel steel brass")
	jobs    = strings.Fields("baker sailor farmer teacher painter miller tailor doctor potter weaver")

	labels = strings.Fields("dax wug blick toma fep zorp kiva lorp mib nalo pim quon rast sib tulver vop")
)
