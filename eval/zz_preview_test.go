package eval
import ("testing";"os";"fmt")
func TestPreview(t *testing.T){ r:=fakeReport(); f,_:=os.Create("/tmp/preview.html"); if err:=r.HTML(f);err!=nil{t.Fatal(err)}; f.Close(); fmt.Println(r.Table(false)); fmt.Println(r.Table(true))}
